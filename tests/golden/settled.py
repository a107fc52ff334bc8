"""What a run wrote, as text that is the same on every machine and whose differences can be read.

Numbers keep five significant digits; versions and rounding errors become a word; styles and scripts are left out; a
figure becomes a list of what is drawn where; packed numbers are unpacked.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import re
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
from PIL import Image

NUMBER = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")
ROUNDING_ERROR = re.compile(r"\d(?:\.\d+)?(?:e-(?:0[6-9]|1\d)|×10⁻[⁶⁷⁸⁹])")
ROWS = 300  # of a table or a list of marks; of more, as many are kept, evenly spread
ACROSS = 12  # numbers to a line
PIXELS = 16  # larger images are made so small
PLACED = (
    "size ",
    "path ",
    "mark ",
    "image:",
)  # lines of a figure whose numbers are places, or shades: they may be 1 off


def settled(name: str, content: str) -> str:
    """The text of one file, by its name."""
    if name.endswith(".svg"):
        return figure(content)
    if name.endswith(".csv"):
        content = _spread_lines(content)
    if name.endswith(".html"):
        content = _page(content)
    return _plain_numbers(content)


def same(text: str, golden: str) -> bool:
    """Whether two texts have the same words and whole numbers, and decimals that agree to four digits."""
    lines, others = text.splitlines(), golden.splitlines()
    return len(lines) == len(others) and all(map(_same_line, lines, others))


def _same_line(line: str, other: str) -> bool:
    if NUMBER.sub("", line) != NUMBER.sub("", other):
        return False
    numbers, others = NUMBER.findall(line), NUMBER.findall(other)
    is_place = line.startswith(PLACED)
    return len(numbers) == len(others) and all(
        _same_number(one, two, is_place=is_place) for one, two in zip(numbers, others, strict=True)
    )


def _same_number(one: str, two: str, *, is_place: bool) -> bool:
    if is_place:
        return abs(float(one) - float(two)) <= 1
    is_decimal = "." in one or "." in two
    return one == two or (is_decimal and math.isclose(float(one), float(two), rel_tol=2e-4, abs_tol=5e-5))


def figure(svg: str) -> str:
    """An SVG as lines: every text, path and row of marks with its colours and where it is drawn, in points."""
    builder = ElementTree.TreeBuilder(insert_comments=True)
    root = ElementTree.fromstring(svg, ElementTree.XMLParser(target=builder))
    lines = [f"size {root.get('viewBox')}"]
    for what, group in itertools.groupby(_drawn(root), key=lambda one: one[0]):
        places = [place for _, place in group]
        count = f" ({len(places)} of them)" if len(places) > ROWS else ""
        lines.append(f"{what}{count}: " + "; ".join(_spread(places)))
    return "\n".join(lines) + "\n"


def _drawn(element: ElementTree.Element) -> list[tuple[str, str]]:
    """What an element and all within it draw; letters are known from the comment before them."""
    if element.tag is ElementTree.Comment:
        return [("text", f"{element.text.strip()!r}")]
    tag = str(element.tag).rpartition("}")[2]
    colours = " ".join(re.findall(r"(?:fill|stroke): (?!none)([^;]+)", element.get("style", "")))
    colours = re.sub(r"url\(.*?\)", "hatched", colours)
    if tag in ("defs", "metadata"):
        return []
    if tag == "path":
        return [(f"path {colours}", _whole(element.get("d", "")))]
    if tag == "use" and element.get("x"):
        return [(f"mark {colours}", _whole(f"{element.get('x')} {element.get('y')}"))]
    if tag == "image":
        return [("image", _shades(next(value for value in element.attrib.values() if value.startswith("data:"))))]
    return [one for child in element for one in _drawn(child)]


def _whole(path: str) -> str:
    return " ".join(f"{float(number):.0f}".replace("-0", "0") for number in re.findall(r"-?[\d.]+", path))


def _shades(address: str) -> str:
    """The lightness of an image, 0 to 255, row by row."""
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA")
    paper = Image.new("RGBA", image.size, "white")
    light = Image.alpha_composite(paper, image).convert("L")
    small = light.resize((min(PIXELS, light.width), min(PIXELS, light.height)), Image.Resampling.BOX)
    return " / ".join(" ".join(map(str, row)) for row in np.asarray(small).tolist())


def _page(page: str) -> str:
    page = re.sub(r"(?s)<style>.*?</style>", "<style>left out</style>", page)
    page = re.sub(r"(?s)(<script(?: type=\"module\")?>).*?(</script>)", r"\1left out\2", page)
    page = re.sub(
        r"(?s)(<script type=\"application/json\"[^>]*>)(.*?)(</script>)",
        lambda found: f"{found[1]}\n{_laid_out(json.loads(found[2]))}\n{found[3]}",
        page,
    )
    page = re.sub(
        r"(?s)(<script type=\"application/octet-stream\"[^>]*>)(.*?)(</script>)",
        lambda found: f"{found[1]}\n{_unpacked(found[2])}\n{found[3]}",
        page,
    )
    page = re.sub(r"(?s)<svg([^>]*)>.*?</svg>", lambda found: f"<svg {_label(found[1])}>", page)
    return re.sub(r"(</(?:tr|li|p|dd|td|th|h\d|figcaption|figure)>)(?=<)", r"\1\n", page)


def _label(attributes: str) -> str:
    return " ".join(re.findall(r'(?:role|aria-label)="[^"]*"', attributes))


def _laid_out(content: object) -> str:
    """JSON with one entry to a line, lists of numbers and words on one."""
    text = json.dumps(content, ensure_ascii=False, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)


def _unpacked(letters: str) -> str:
    numbers = [f"{number:.5g}" for number in np.frombuffer(zlib.decompress(base64.b64decode(letters)), "<f4")]
    return "\n".join(" ".join(numbers[at : at + ACROSS]) for at in range(0, len(numbers), ACROSS))


def _spread_lines(table: str) -> str:
    head, *rows = table.splitlines()
    count = f"({len(rows)} rows, of which {ROWS})\n" if len(rows) > ROWS else ""
    return count + "\n".join([head, *_spread(rows)]) + "\n"


def _spread(rows: list[str]) -> list[str]:
    if len(rows) <= ROWS:
        return rows
    return [rows[index * len(rows) // ROWS] for index in range(ROWS)]


def _plain_numbers(text: str) -> str:
    text = re.sub(r'normlens(:| |": ")\d+\.\d+\.\w+', r"normlens\1VERSION", text)
    text = ROUNDING_ERROR.sub("tiny", text)
    return NUMBER.sub(lambda found: _five_digits(found[0]), text)


def _five_digits(number: str) -> str:
    digits = re.sub(r"e.*|\D", "", number).lstrip("0")
    return f"{float(number):.5g}" if "." in number and len(digits) > 5 else number
