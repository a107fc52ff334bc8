"""Routes as a graph to look at: positions from left to right, layers upwards, edges as wide as what comes that way."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from normlens import views
from normlens.corpora import bare
from normlens.exhibits import Edge, Graph, Level, Node, draw, drawing_page, inlined
from normlens.files import write_table, write_whole, writing
from normlens.lens.network_map import MapError

if TYPE_CHECKING:
    from normlens.lens.routes import Node as Point
    from normlens.lens.routes import Routes

HEIGHTS = {
    "read": 0.0,
    "attended": -0.6,
    "crossed": -0.3,
    "feed-forward": -0.15,
    "end": 0.0,
}  # below the end of a layer
ASIDE = {"feed-forward": 0.28}
FORMS = (".html", ".svg", ".png")
SAYS = (
    "Each line is a term of a sum, as wide and dark as what comes that way to the position on top; numbers are heads. "
    "A side step to the right is a feed-forward block."
)


def graph(routes: Routes) -> Graph:
    """Every edge that was kept; what several heads bring from the same position is one line."""
    tokens = _tokens(routes)
    nodes = [Node(_name(node), *_place(routes, node), name) for node, name in tokens.items()]
    nodes += [Node(_name(node), *_place(routes, node)) for node in routes.nodes if node not in tokens]
    flows: defaultdict[tuple[Point, Point], float] = defaultdict(float)
    heads: defaultdict[tuple[Point, Point], list[int]] = defaultdict(list)
    for edge in routes.edges:
        flows[edge.src, edge.tgt] += edge.flow
        if edge.head is not None:
            heads[edge.src, edge.tgt].append(edge.head)
    edges = [Edge(_name(src), _name(tgt), flow, " ".join(map(str, sorted(heads[src, tgt]))))
             for (src, tgt), flow in flows.items()]  # fmt: skip
    reached = [name for node, name in tokens.items() if node in {edge.src for edge in routes.edges}]
    side, least = routes.sides[-1], f"{100 * routes.threshold:g} %"
    where = f"position {routes.position} ({bare(side.tokens[routes.position])})"
    return Graph(
        "routes",
        f"Routes to {where} by terms with a share of at least {least}. {SAYS}",
        f"A graph of {len(edges)} lines to {where} from {', '.join(reached) or 'no token'}.",
        tuple(nodes),
        tuple(edges),
        y="layer",
        levels=_levels(routes),
    )


def fragment(routes: Routes) -> str:
    """The drawing as part of a notebook."""
    shown = graph(routes)
    return inlined(draw(shown).svg, name=shown.name, alt=shown.alt)


def save(routes: Routes, path: Path) -> Path:
    """The drawing as a page or a picture, or the table; the suffix decides."""
    if path.suffix in (".csv", ".parquet"):
        write_table(routes.to_dataframe(), path)
        return path
    if path.suffix not in FORMS:
        forms = views.either((*FORMS, ".csv", ".parquet"))
        raise MapError(f"unsupported format {path.suffix or repr(path.name)} (use {forms}).")
    shown = graph(routes)
    drawing = draw(shown)
    if path.suffix == ".html":
        text = " → ".join(" ".join(map(bare, side.words)) for side in routes.sides)
        content = drawing_page(shown, drawing, title=text, signature=str(routes.signature)).encode("utf-8")
    else:
        content = drawing.svg.encode("utf-8") if path.suffix == ".svg" else drawing.png
    with writing(path, MapError):
        write_whole(path, content)
    return path


def _tokens(routes: Routes) -> dict[Point, str]:
    """What the first layers read, by name, also where no route leads."""
    return {node: bare(routes.token(node)) for node in routes.tokens}


def _name(node: Point) -> str:
    return f"{node.side} {node.layer} {node.part} {node.position}"


def _base(routes: Routes, side: str) -> float:
    """Where the layers of a side begin: those of a decoder above those of its encoder."""
    if len(routes.sides) == 1 or side == routes.sides[0].name:
        return 0.0
    below = [node.layer for node in routes.nodes if node.side == routes.sides[0].name]
    return max(below, default=-1) + 2.0


def _place(routes: Routes, node: Point) -> tuple[float, float]:
    before = 0 if node.side == routes.sides[0].name else len(routes.sides[0].tokens) + 1
    height = _base(routes, node.side) + node.layer + HEIGHTS[node.part]
    return before + node.position + ASIDE.get(node.part, 0.0), height


def _levels(routes: Routes) -> tuple[Level, ...]:
    """The ends of layers, by name."""
    found = sorted({(node.side, node.layer) for node in routes.nodes if node.layer >= 0})
    several = len(routes.sides) > 1
    return tuple(
        Level(_base(routes, side) + layer, f"{side} {layer}" if several else str(layer)) for side, layer in found
    )
