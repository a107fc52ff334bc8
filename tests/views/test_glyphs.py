"""Whatever a vocabulary holds, a token prints on one line in a known number of cells."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.views.glyphs import clusters, fit, visible, width

tokens = st.one_of(
    st.text(max_size=12), st.text(alphabet="猫 e\u0301\u200d👩🏽🇩ㅎ\u1161\ufe0f\x1b\n\u202e\ud800\uff21", max_size=8)
)

TONES = tuple(map(chr, range(0x1F3FB, 0x1F400)))


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("a\nb", "a␊b"),
        ("\x1b[31m", "␛[31m"),  # an escape sequence must not colour the terminal
        ("\x7f", "␡"),
        ("\x85", "�"),
        (" the", "␣the"),
        ("", "∅"),
        ("\u202eabc", "abc"),  # text direction override
        ("\u200d", "∅"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "é"),
        ("\ud800", "�"),
        ("Ġthe", "Ġthe"),
        ("▁猫", "▁猫"),
    ],
)
def test_nothing_is_hidden(token, shown):
    assert visible(token) == shown


@pytest.mark.parametrize(
    ("token", "cells"), [("cat", 3), ("猫", 2), ("e\u0301", 1), ("x\u0302\u0323", 1), ("👍", 2), ("ｱ", 1), ("한", 2)]
)
def test_widths_known_by_eye(token, cells):
    assert width(token) == cells


@given(tokens)
def test_a_visible_token_is_one_printable_line(token):
    shown = visible(token)
    assert shown
    shown.encode("utf-8")
    for char in shown:
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
    assert shown == "".join(shown.splitlines())


@given(tokens, st.integers(1, 20))
def test_fit_takes_exactly_the_cells_it_is_given(token, cells):
    fitted = fit(token, cells)
    assert sum(size for _, size in clusters(fitted.replace(" ", "."))) == cells


@given(tokens, st.integers(1, 20))
def test_the_width_agrees_with_rich(token, cells):
    """A second table of terminal widths; what such tables differ on (a lone skin tone, rare scripts) is left out."""
    cell_len = pytest.importorskip("rich.cells", reason="rich is the second opinion").cell_len
    fitted = fit(token, cells)
    if not visible(token).startswith(TONES) and all(
        ord(char) < 0x250 or unicodedata.east_asian_width(char) in "WF" for char in fitted
    ):
        assert cell_len(fitted) == cells
