"""A figure's SVG, as matplotlib writes it, as part of a page."""

from __future__ import annotations

import html
import re

from normlens.views import visible_line

SCREEN = 1.12  # on a screen figures stand a little larger than on paper


def inlined(svg: str, *, name: str, alt: str) -> str:
    """The drawing alone: no prolog, no metadata, no style for others; its ids carry its name, the unused ones go."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"(?s)<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", drawing)
    drawing = drawing.replace("xlink:href=", "href=")
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', drawing))
    drawing = re.sub(r'(href="|url\()#', rf"\1#{name}-", drawing)
    drawing = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", drawing)
    box = re.search(r'viewBox="([^"]+)"', drawing)
    assert box is not None
    points = float(box[1].split()[2])
    opening = (
        f'<svg viewBox="{box[1]}" style="width:{points * 96 / 72 * SCREEN:.0f}px" role="img" '
        f'aria-label="{html.escape(visible_line(alt))}">'
    )
    body = drawing[drawing.index(">") + 1 :]
    body = re.sub(r"<g>\s*</g>|<defs>\s*</defs>", "", body)
    return opening + re.sub(r"\n\s*", "\n", body).strip()
