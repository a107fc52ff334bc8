"""The page stands alone, always the same, and no token can break out of it."""

import html
import json
import re
from importlib.resources import files

import numpy as np
import pytest
from view_figures import headline, random_figure, side, translation

from normlens.views.figure import Figure
from normlens.views.html import fragment, page

HOSTILE = ("</script><b>", "<!--", "]]>", "&lt;", '"onload="alert(1)', "{{data}}", "\u2028", "\ud800", "'", "\\")


def hostile() -> Figure:
    figure = random_figure(*HOSTILE)
    return Figure("</title><script>alert(1)</script> {{data}}", "<img src=x>", figure.sides, figure.panels)


def test_the_same_figure_gives_the_same_page():
    assert page(translation()) == page(translation())
    assert fragment(translation()) == fragment(translation())


@pytest.mark.parametrize("make", [headline, translation, hostile])
def test_a_page_needs_nothing_but_itself(make):
    text = page(make())
    assert "http://" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")  # a name, not an address
    assert "https://" not in text
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", re.sub(r"(?s)<pre.*?</pre>", "", text))
    assert "default-src 'none'" in text
    assert not re.search(r"\{\{(title|style|script|summary)\}\}", text)


def test_tokens_cannot_break_out():
    text = page(hostile())
    text.encode("utf-8")
    scripts = 2 + len(hostile().panels)  # the data, a chunk for each panel, the code
    assert text.count("</script>") == scripts
    assert text.count("<script") == scripts
    assert "<b>" not in text
    assert "<img" not in text
    assert "alert(1)</script>" not in text


def test_the_data_block_reads_back():
    block = re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', page(hostile()))
    assert block is not None
    data = json.loads(block[1])
    assert data["sides"][0]["tokens"][:6] == list(HOSTILE[:6])
    assert data["sides"][0]["tokens"][6:8] == ["␣", "�"]


def test_a_fragment_is_the_page_in_a_frame_with_text_beneath():
    text = fragment(hostile())
    frame = re.search(r'srcdoc="([^"]*)"', text)
    assert frame is not None
    assert html.unescape(frame[1]) == page(hostile())
    assert "<script" not in text
    assert "share of contributions ‖αf(x)‖" in text.rsplit("</iframe>", 1)[1]


def test_the_page_holds_the_table_for_when_scripts_are_off():
    text = page(headline())
    assert (
        "[SEP] receives 80 % of the attention and makes 6.2 % of the contributions."
        in text.split('<pre id="fallback">')[1]
    )


def test_twelve_by_twelve_heads_at_128_tokens_stay_small():
    figure = random_figure(*(f"token{n}" for n in range(128)), layers=12, heads=12)
    assert len(page(figure).encode()) < 3_000_000
    assert len(fragment(figure).encode()) < 3_000_000


def modules():
    """The scripts of the view; highlighted texts are a page of their own, with one script."""
    every = files("normlens.views").joinpath("assets").iterdir()
    return [path for path in every if path.name.endswith(".js") and path.name != "highlights.js"]


def test_no_two_modules_of_the_page_use_one_name_at_the_top():
    """They become one script, so a name may be given once."""
    names = [
        name
        for path in modules()
        for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|function) (\w+)", path.read_text(), re.MULTILINE)
    ]
    assert len(names) > 50
    assert sorted(set(names)) == sorted(names)


def test_every_module_is_in_the_page_without_its_imports():
    text = page(headline())
    for path in modules():
        code = [line for line in path.read_text(encoding="utf-8").splitlines() if not re.match(r"import | *//", line)]
        assert "\n".join(code[-3:]).replace("export ", "") in text, path.name
    assert "\nimport " not in text
    assert "\nexport " not in text


def test_one_token_and_no_special_tokens_are_fine():
    figure = Figure("x", "s", (side("x"),), random_figure("x", layers=1, heads=1).panels)
    assert "x" in page(figure)


def test_the_two_colour_ramps_are_equally_light_at_each_step():
    """So that the two maps compare fairly, also in grey; and each ramp only goes one way."""
    ramps = re.findall(r"(weight|norm): \[(.*?)\]", files("normlens.views").joinpath("assets/color.js").read_text())
    lightness = [[lightness_of(stop) for stop in re.findall("#[0-9a-f]{6}", stops)] for _, stops in ramps]
    for weight, norm in (lightness[:2], lightness[2:]):
        assert np.abs(np.subtract(weight, norm)).max() < 5
    for ramp in lightness:
        assert len(ramp) == 9
        assert (np.diff(ramp) < -5).all() or (np.diff(ramp) > 5).all()


def lightness_of(colour: str) -> float:
    """CIE L*, from 0 (black) to 100 (white)."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16)
