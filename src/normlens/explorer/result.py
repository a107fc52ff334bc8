"""A result as five files in one folder: written by a worker, read by the server without torch.

Room: plain data to files and back. The names of the files are fixed here; nothing a browser sends becomes a path.

    header.json, chunks.bin     what a page shows: the packed figure
    figure.json, numbers.bin    the figure in full, float32, for exact numbers and for the page to download
    trace.safetensors           the trace, unless the figure is a difference
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from normlens import views
from normlens.explorer.refusal import Refusal, gone
from normlens.picture import Picture

HEADER, CHUNKS, FACTS, NUMBERS, TRACE = "header.json", "chunks.bin", "figure.json", "numbers.bin", "trace.safetensors"


def write(folder: Path, figure: views.Figure) -> None:
    """Everything but the trace."""
    packed = views.packed(figure)
    (folder / HEADER).write_text(json.dumps(packed.header, ensure_ascii=False), encoding="utf-8")
    with (folder / CHUNKS).open("wb") as file:
        file.writelines(packed.chunks)
    facts: dict[str, Any] = {name: getattr(figure, name) for name in ("title", "signature", "note", "difference")}
    facts["chunks"] = [0, *accumulate(map(len, packed.chunks))]
    facts["look"] = figure.look.as_json()
    facts["sides"] = [_side_facts(side) for side in figure.sides]
    facts["panels"] = []
    offset = 0
    with (folder / NUMBERS).open("wb") as file:
        for panel in figure.panels:
            maps = []
            for one in panel.maps:
                named = {name: getattr(one, name) for name in ("name", "label", "axes", "tone", "signed")}
                maps.append(named | {"shape": one.values.shape, "at": offset})
                offset += file.write(one.values.astype("<f4", copy=False).tobytes())
            about = ("name", "kind", "tgt", "src", "heads", "size", "error")
            facts["panels"].append({name: getattr(panel, name) for name in about} | {"maps": maps})
    (folder / FACTS).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


def chunk(folder: Path, number: int) -> tuple[int, int]:
    """Where the packed numbers of one panel begin in the file of chunks, and how many bytes they are."""
    ends = _facts(folder)["chunks"]
    if number >= len(ends) - 1:
        raise Refusal(404, f"This result has no chunk {number}.", f"ask for one of 0 to {len(ends) - 2}.")
    return ends[number], ends[number + 1] - ends[number]


def exact(folder: Path, number: int, axis: str, at: int) -> bytes:
    """Row or column `at` of every map of one panel, from its own bytes alone."""
    facts = _facts(folder)
    if number >= len(facts["panels"]):
        raise Refusal(404, f"This result has no panel {number}.", f"ask for one of 0 to {len(facts['panels']) - 1}.")
    panel = facts["panels"][number]
    rows, columns = panel["size"]
    most = rows if axis == "tgt" else columns
    if at >= most:
        raise Refusal(404, f"Panel {number} has no {axis} position {at}.", f"ask for one of 0 to {most - 1}.")
    sides = tuple(views.Side("", ("",) * n, (False,) * n, (None,) * n) for n in (rows, columns))
    alone = views.Figure("", "", sides, (_panel(folder, panel | {"tgt": 0, "src": 1}),))
    return views.exact(alone, 0, "tgt" if axis == "tgt" else "src", at)


def figure(folder: Path) -> views.Figure:
    """The figure as it was written."""
    facts = _facts(folder)
    return views.Figure(
        facts["title"],
        facts["signature"],
        tuple(_side(side) for side in facts["sides"]),
        tuple(_panel(folder, panel) for panel in facts["panels"]),
        look=views.Look().changed(**facts["look"]),
        note=facts["note"],
        difference=facts["difference"],
    )


def _facts(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except OSError as error:
        raise gone() from error


def _panel(folder: Path, facts: dict[str, Any]) -> views.Panel:
    maps = []
    for one in facts["maps"]:
        named = {name: one[name] for name in ("name", "label", "axes", "tone", "signed")}
        shape = tuple(one["shape"])
        values = np.memmap(folder / NUMBERS, "<f4", "r", one["at"], shape) if 0 not in shape else np.zeros(shape, "<f4")
        maps.append(views.Map(values=values, **named))
    about = {name: facts[name] for name in ("name", "kind", "tgt", "src", "error")}
    return views.Panel(**about, heads=tuple(facts["heads"]), size=tuple(facts["size"]), maps=tuple(maps))


def _side_facts(side: views.Side) -> dict[str, Any]:
    facts = asdict(side)
    if side.picture is not None:
        facts["picture"]["png"] = base64.b64encode(side.picture.png).decode("ascii")
    return facts


def _side(facts: dict[str, Any]) -> views.Side:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    if facts["picture"] is not None:
        fields["picture"] = Picture(**facts["picture"] | {"png": base64.b64decode(facts["picture"]["png"])})
    return views.Side(**fields)
