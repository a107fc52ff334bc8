"""Model inputs made up from a forward signature and a configuration.

A signature rarely says everything (how many axes has `pixel_values`?), so what is made is a short list of candidates,
the fullest first; whoever runs the model takes the first one it accepts.
"""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from transformers import PreTrainedModel

from normlens.probes.inputs.composite import interleaved
from normlens.probes.inputs.forward import BATCH, Forward
from normlens.probes.inputs.media import Media, audio_variants, image_variants, video_variants
from normlens.probes.inputs.named import named
from normlens.probes.inputs.recipes import recipe
from normlens.probes.inputs.text import decoder_text, text

_MOST = 80
_VECTORS = frozenset({"hidden_states", "inputs_embeds", "context"})


def candidates(model: PreTrainedModel, *, seed: int) -> Iterator[dict[str, Any]]:
    """Input sets the model may accept, fullest first."""
    forward = Forward.of(model, seed=seed)
    yield from islice((inputs for inputs in _candidates(model, forward) if inputs), _MOST)


def _candidates(model: PreTrainedModel, forward: Forward) -> Iterator[dict[str, Any]]:
    if (known := recipe(forward)) is not None:
        yield known
    names = forward.names
    images = (
        list(image_variants(forward))
        if forward.has("pixel_values", "image") or "hidden_states" in forward.required or _flat(names)
        else []
    )
    videos = list(video_variants(forward)) if "pixel_values_videos" in names else []
    audios = list(audio_variants(forward))
    words = text(forward) if "input_ids" in names else {}
    target = decoder_text(forward)
    rest = named(forward)
    if words:
        for image, audio in product([*images[:4], {}], [*audios[:4], {}]):
            if (image or audio) and (whole := interleaved(model, forward, image, audio)) is not None:
                yield rest | whole | target
        for image, audio in _together(images, audios):
            yield rest | words | target | image | audio
        for video in videos:
            yield rest | words | target | video
        yield rest | words | target
        if target:
            yield rest | words
        yield rest | {"input_ids": words["input_ids"]}
    for medium in (*images, *audios, *videos):
        yield rest | medium | target
        if target:
            yield rest | medium
    for image, audio in product(images, audios):
        yield rest | image | audio
    for video, audio in product(videos, audios):
        yield rest | video | audio
    yield rest | target
    for shape in ((BATCH, 8, forward.first_width), (BATCH, forward.first_width, 8)):
        yield rest | {name: forward.normal(*shape) for name in _VECTORS & forward.required}
    if words and "inputs_embeds" in names:
        width = forward.number("hidden_size", "d_model", within=("text",), default=forward.first_width)
        vectors = forward.normal(*words["input_ids"].shape, width)
        yield {name: value for name, value in words.items() if name != "input_ids"} | {"inputs_embeds": vectors}


def _together(images: list[Media], audios: list[Media]) -> Iterator[tuple[Media, Media]]:
    yield from product(images[:2], audios[:3])
    yield from ((image, {}) for image in images)
    yield from (({}, audio) for audio in audios)


def _flat(names: frozenset[str]) -> bool:
    return bool(names & {"flattened_patches", "pixel_values_images", "image_pixel_values", "grid_thw"})
