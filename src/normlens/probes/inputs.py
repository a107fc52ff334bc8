"""Model inputs made up from a forward signature and a configuration.

Room: tiny models. Knows signatures, configurations and shapes; runs nothing.

A signature rarely says everything (how many axes has `pixel_values`?), so what is made is a short list of candidates,
the fullest first; whoever runs the model takes the first one it accepts.
"""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from transformers import PreTrainedModel

from normlens.probes.composite import interleaved
from normlens.probes.media import Media, audio_variants, image_variants, video_variants
from normlens.probes.named import named
from normlens.probes.recipes import recipe
from normlens.probes.setting import BATCH, Setting
from normlens.probes.text import decoder_text, text

_MOST = 80
_VECTORS = frozenset({"hidden_states", "inputs_embeds", "context"})


def candidates(model: PreTrainedModel, *, seed: int) -> Iterator[dict[str, Any]]:
    """Input sets the model may accept, fullest first."""
    setting = Setting.of(model, seed=seed)
    yield from islice((inputs for inputs in _candidates(model, setting) if inputs), _MOST)


def _candidates(model: PreTrainedModel, setting: Setting) -> Iterator[dict[str, Any]]:
    if (known := recipe(setting)) is not None:
        yield known
    names = setting.names
    images = (
        list(image_variants(setting))
        if setting.has("pixel_values", "image") or "hidden_states" in setting.required or _flat(names)
        else []
    )
    videos = list(video_variants(setting)) if "pixel_values_videos" in names else []
    audios = list(audio_variants(setting))
    words = text(setting) if "input_ids" in names else {}
    target = decoder_text(setting)
    rest = named(setting)
    if words:
        for image, audio in product([*images[:4], {}], [*audios[:4], {}]):
            if (image or audio) and (whole := interleaved(model, setting, image, audio)) is not None:
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
    for shape in ((BATCH, 8, setting.first_width), (BATCH, setting.first_width, 8)):
        yield rest | {name: setting.normal(*shape) for name in _VECTORS & setting.required}
    if words and "inputs_embeds" in names:
        width = setting.number("hidden_size", "d_model", within=("text",), default=setting.first_width)
        vectors = setting.normal(*words["input_ids"].shape, width)
        yield {name: value for name, value in words.items() if name != "input_ids"} | {"inputs_embeds": vectors}


def _together(images: list[Media], audios: list[Media]) -> Iterator[tuple[Media, Media]]:
    yield from product(images[:2], audios[:3])
    yield from ((image, {}) for image in images)
    yield from (({}, audio) for audio in audios)


def _flat(names: frozenset[str]) -> bool:
    return bool(names & {"flattened_patches", "pixel_values_images", "image_pixel_values", "grid_thw"})
