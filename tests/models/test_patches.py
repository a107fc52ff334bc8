"""A side of patches knows its image; where patches are not the tokens, nothing is claimed."""

import io
import warnings

import numpy as np
import pytest
import torch
import transformers

import normlens as nl

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def vision(family, **settings):
    """A tiny vision model of that family, with patches of 8 pixels if it is not told otherwise."""
    torch.manual_seed(0)
    config = {"image_size": 32, "patch_size": 8, **({} if "embed_dim" in settings else SMALL), **settings}
    name = {"CLIP": "CLIPVision", "Siglip": "SiglipVision"}.get(family, family)
    made = getattr(transformers, f"{name}Config")(**config)
    return getattr(transformers, f"{name}Model")(made).eval()


def traced(model, pixels, **more):
    inputs = {"pixel_values": pixels, **more}
    return nl.load(model, probe=inputs).trace(inputs)


def decoded(png):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    with image.open(io.BytesIO(png)) as opened:
        opened.verify()
    with image.open(io.BytesIO(png)) as opened:
        return np.asarray(opened)


@pytest.mark.parametrize(
    ("family", "settings", "before"),
    [
        ("ViT", {}, ("[CLS]",)),
        ("DeiT", {}, ("[CLS]", "[DIST]")),
        ("CLIP", {}, ("[CLS]",)),
        ("Siglip", {}, ()),
        ("Dinov2", {}, ("[CLS]",)),
        ("Dinov2WithRegisters", {"num_register_tokens": 2}, ("[CLS]", "[REG1]", "[REG2]")),
    ],
)
def test_patches_are_named_by_row_and_column(family, settings, before):
    side = traced(vision(family, **settings), torch.rand(2, 3, 32, 32)).sides[1]
    assert side.tokens[: len(before)] == before
    assert side.tokens[len(before) :] == tuple(f"r{row}c{column}" for row in range(4) for column in range(4))
    assert side.special == (True,) * len(before) + (False,) * 16
    assert side.words == side.tokens[len(before) :]
    assert (side.picture.rows, side.picture.columns, side.picture.first) == (4, 4, len(before))


def test_each_image_of_a_batch_has_its_own_picture():
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)) * 4 - 2
    for image, side in zip(pixels, traced(vision("ViT"), pixels).sides, strict=True):
        expected = 255 * (image - image.min()) / (image.max() - image.min())
        np.testing.assert_allclose(decoded(side.picture.png), expected.permute(1, 2, 0).numpy(), atol=0.51)


def test_an_image_need_not_be_square():
    side = traced(vision("Dinov2"), torch.rand(1, 3, 24, 43)).sides[0]
    assert (side.picture.rows, side.picture.columns) == (3, 5)
    assert decoded(side.picture.png).shape == (24, 40, 3)  # without the three columns that no patch holds


def test_one_channel_is_grey_and_one_colour_is_no_error():
    pixels = torch.ones(1, 1, 32, 32)
    side = traced(vision("ViT", num_channels=1), pixels).sides[0]
    assert decoded(side.picture.png).shape == (32, 32)


def test_a_large_image_is_stored_small():
    side = traced(vision("ViT", image_size=800, patch_size=200), torch.rand(1, 3, 800, 800)).sides[0]
    assert max(decoded(side.picture.png).shape) <= 384
    assert (side.picture.rows, side.picture.columns) == (4, 4)


@pytest.mark.parametrize(
    ("family", "settings", "tokens"),
    [
        (
            "Swin",
            {"patch_size": 4, "window_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2]},
            ("0", "1"),
        ),
        ("Yolos", {"image_size": [32, 32], "num_detection_tokens": 3}, ("[+0]", "[0]")),
        ("ViTMAE", {"mask_ratio": 0.0}, ("[+0]", "[15]", "[14]")),
        ("ViTMAE", {"mask_ratio": 0.5}, ("[+0]", "[15]", "[14]")),
    ],
    ids=["windows", "tokens behind the patches", "shuffled patches", "dropped patches"],
)
def test_what_is_not_a_grid_of_patches_has_no_picture(family, settings, tokens):
    """Patches that stand in another order are named by their own number all the same."""
    noise = {"noise": torch.linspace(1, 0, 16).expand(2, 16)} if family == "ViTMAE" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = traced(vision(family, **settings), torch.rand(2, 3, 32, 32), **noise)
    assert all(side.picture is None for side in trace.sides)
    assert trace.sides[0].tokens[: len(tokens)] == tokens


def test_tokens_that_cannot_be_named_have_numbers():
    model = vision("ViT")
    model.embeddings.register_parameter("distillation_token", torch.nn.Parameter(torch.zeros(1, 1, 32)))
    assert traced(model, torch.rand(1, 3, 32, 32)).sides[0].tokens[0] == "[0]"


def test_text_has_no_picture(minilm):
    assert minilm.trace("A cat.").sides[0].picture is None


def test_a_saved_trace_keeps_its_pictures(tmp_path):
    trace = traced(vision("ViT"), torch.rand(2, 3, 32, 32))
    again = nl.open(trace.save(tmp_path / "t.safetensors"))
    assert again.sides == trace.sides
