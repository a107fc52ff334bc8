"""A token as something that can be printed, and how many terminal cells it takes.

Tokens are raw model vocabulary: they hold newlines, half emoji, lone combining marks, text-direction overrides. Printed
as they are they would break a table or hide what they are.
"""

import unicodedata

_JOINERS = {"\u200c", "\u200d"}  # harmless and meaningful in Persian, Indic scripts and emoji


def visible(token: str) -> str:
    """The token on one line with nothing hidden: controls as ␊, spaces as ␣, broken characters as �, empty as ∅."""
    shown = "".join(_visible_character(char) for char in unicodedata.normalize("NFC", token))
    if not shown.strip("\u200c\u200d"):
        return "∅"
    return "◌" + shown if _is_mark(shown[0]) else shown


def clusters(token: str) -> list[tuple[str, int]]:
    """The token cut into pieces that must stay together, each with its width in terminal cells (1 or 2).

    Joiners, variation selectors and skin tones are left out: terminals disagree about the width they make.
    """
    pieces: list[tuple[str, int]] = []
    for char in visible(token):
        if char in _JOINERS or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
            continue
        if pieces and "\U0001f3fb" <= char <= "\U0001f3ff":
            continue
        if _is_mark(char) and pieces:
            pieces[-1] = (pieces[-1][0] + char, pieces[-1][1])
        else:
            pieces.append((char, 2 if unicodedata.east_asian_width(char) in "WF" else 1))
    return pieces


def width(token: str) -> int:
    """How many terminal cells the visible token takes.

    >>> width("cat"), width("猫")
    (3, 2)
    """
    return sum(cells for _, cells in clusters(token))


def fit(token: str, cells: int) -> str:
    """The visible token in exactly so many cells: padded on the right, or cut with an ellipsis.

    >>> fit("猫が", 6), fit("unbelievable", 6)
    ('猫が  ', 'unbel…')
    """
    pieces = clusters(token)
    total = sum(size for _, size in pieces)
    if total > cells:
        while pieces and total > cells - 1:
            total -= pieces.pop()[1]
        pieces.append(("…", 1))
        total += 1
    return "".join(text for text, _ in pieces) + " " * (cells - total)


def _visible_character(char: str) -> str:
    category = unicodedata.category(char)
    if char < " ":
        return chr(0x2400 + ord(char))
    if char == "\x7f":
        return "␡"
    if category in ("Zs", "Zl", "Zp"):
        return "␣"
    if category == "Cf":  # text direction, soft hyphen, tags: invisible and able to reorder the line
        return char if char in _JOINERS else ""
    if category in ("Cc", "Cs", "Co", "Cn"):
        return "�"
    return char


def _is_mark(char: str) -> bool:
    """Drawn on the character before it. The second range pair: Hangul vowels and finals, which join their initial."""
    return unicodedata.category(char) in ("Mn", "Me") or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"
