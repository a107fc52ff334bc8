"""Attribution of a logit to every attention weight, and the tree of the strongest (Hao et al., 2021).

    Attr[h,i,j] = α[h,i,j] · mean_k ∂F(t_k α) / ∂α[h,i,j]        t_k from 0 to 1, all heads of one layer scaled together

Scaling the weights of a layer scales what its output matrix reads, c = Σ_j α v, so ∂F/∂α[h,i,j] = ∂F/∂c[h,i] · v[h,j].
A layer's attributions add up to F with its attention less F without it. The authors take t_k = k/m for k = 0 ... m-1;
the middle of each step is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from normlens.attribution.embeddings import TOKENS_AT_ONCE, check_precision, from_row, reading, repeated
from normlens.attribution.question import AttributionError, Method, Question, Scores
from normlens.capture import Attended, relative_error, run, tolerance
from normlens.models import as_found

STEPS, THRESHOLD = 20, 0.4  # as published


@dataclass(frozen=True, slots=True, eq=False)
class AttendedLayer:
    """The attributions of one attention block."""

    where: str
    tgt: str  # whose positions the queries are: "input_ids" ...
    src: str
    values: Float[Tensor, "head tgt src"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A branch of the tree: in this layer, a query is due to a key."""

    layer: int
    tgt: int
    src: int
    score: float  # added over heads


def attention_attributions(question: Question, *, steps: int = STEPS, authors: bool = False) -> list[AttendedLayer]:
    """Every attention block of a pass, in the order in which they run."""
    check_precision(question)
    subject = question.watcher.subject
    blocks: list[Attended] = []
    with _read_by(subject.model, None) as received:
        ran = run(subject.model, question.inputs, blocks.append)
    if ran.refused or not blocks:
        why = f"{ran.refused[0].where}: {ran.refused[0].reason}" if ran.refused else "no attention was seen"
        raise AttributionError(f"Some attention of '{subject.name}' cannot be split, so it has no attribution ({why}).")
    places = (torch.arange(steps) + (0.0 if authors else 0.5)) / steps
    uses, layers = Counter[str](), []
    for block in sorted(blocks, key=lambda block: block.order):
        module = block.out.removesuffix(".weight")
        use, uses[module] = uses[module], uses[module] + 1
        _check(question, block, received.get((module, use)))
        slopes = _slopes(question, module, use, places, block)
        values = block.weights[0] * torch.einsum("hid,hjd->hij", slopes, block.values[0])
        layers.append(AttendedLayer(block.where, block.tgt.names[0], block.src.names[0], values.detach()))
    return layers


def tree(question: Question, *, threshold: float = THRESHOLD) -> list[Edge]:
    """The strongest branches from the position that is read down to the tokens, layer by layer.

    A layer keeps the edges of at least `threshold` of its strongest, from positions reached so far; a position is also
    carried on by the residual. For models with one side.
    """
    if question.written is not None:
        raise AttributionError("The tree of attention is for models with one side.", do="read the layers one by one.")
    reached, edges = {int(reading(question).argmax())}, list[Edge]()
    layers = attention_attributions(question)
    for number in reversed(range(len(layers))):
        scores = layers[number].values.sum(dim=0)
        least = threshold * float(scores.max())
        found = [
            Edge(number, tgt, src, float(scores[tgt, src]))
            for tgt in sorted(reached)
            for src in range(scores.shape[1])
            if src != tgt and float(scores[tgt, src]) >= least > 0
        ]
        edges += found
        reached |= {edge.src for edge in found}
    return edges


def attattr(question: Question) -> Scores:
    """The attributions of the attention that each token receives, added over layers, heads and queries."""
    count = len(question.encoded.sides[0].tokens)
    parts = {"input_ids": torch.zeros(count), "decoder_input_ids": torch.zeros(question.written or 0)}
    for layer in attention_attributions(question):
        received = layer.values.sum(dim=(0, 1)).cpu()
        if layer.src not in parts or len(received) != len(parts[layer.src]):
            raise AttributionError(f"The keys of '{layer.where}' are not the tokens of the text: {layer.src}.")
        parts[layer.src] += received
    return Scores(torch.cat(list(parts.values())))


def _slopes(
    question: Question, module: str, use: int, places: Float[Tensor, " step"], block: Attended
) -> Float[Tensor, "head tgt head_dim"]:
    """The mean slope of the logit by what the output matrix reads, over copies with that scaled."""
    model, tokens = question.watcher.subject.model, block.weights.shape[-1] + block.weights.shape[-2]
    options, asked = from_row(question)
    total = torch.zeros_like(block.values[0, :, :1]).expand(-1, block.weights.shape[2], -1).clone()
    for part in places.split(max(1, TOKENS_AT_ONCE // tokens)):
        with as_found(model), torch.inference_mode(False), torch.enable_grad():
            inputs: dict[str, Any] = {name: repeated(value, len(part)) for name, value in question.inputs.items()}
            inputs = {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}
            with _read_by(model, partial(_scaled, module, use, part)) as received:
                logit = asked.logit(model(**inputs, **options).logits)
            (slope,) = torch.autograd.grad(logit.sum(), received[module, use], allow_unused=True)
        if slope is None:
            raise AttributionError(
                f"The logit of '{question.watcher.subject.name}' does not depend on what '{module}' reads.",
                do="choose another method.",
            )
        total += _heads(slope, block).sum(dim=0)
    return total / len(places)


def _scaled(wanted: str, use: int, places: Tensor, module: str, number: int, states: Tensor) -> Tensor | None:
    """The input of one output matrix times the place of each copy, as a leaf of the graph."""
    if (module, number) != (wanted, use):
        return None
    shape = (len(places), *[1] * (states.ndim - 1))
    return (states.detach() * places.to(states).reshape(shape)).requires_grad_()


def _heads(states: Tensor, block: Attended) -> Float[Tensor, "copy head tgt head_dim"]:
    """What an output matrix reads, head by head."""
    _, heads, tgt, _ = block.weights.shape
    return states.reshape(-1, tgt, heads, block.values.shape[-1]).transpose(1, 2)


def _check(question: Question, block: Attended, states: Tensor | None) -> None:
    """Refuse a block whose output matrix reads something else than Σ_j α v of its heads side by side."""
    expected = block.weights @ block.values
    is_plain = block.gates is None and block.scales is None and states is not None
    if is_plain and states is not None and states.numel() == expected.numel():
        error = relative_error(_heads(states, block), expected)
        if error <= 10 * tolerance(expected.dtype):
            return
    raise AttributionError(
        f"'{block.where}' of '{question.watcher.subject.name}' reads something else than the weighted values of its "
        "heads side by side, so its attention cannot be scaled.",
        cause="a gate, a norm or another matrix between attention and output matrix.",
        do="choose another method.",
    )


@contextmanager
def _read_by(
    model: nn.Module, change: Callable[[str, int, Tensor], Tensor | None] | None
) -> Iterator[dict[tuple[str, int], Tensor]]:
    """What matrices read meanwhile, by module and use; `change` may put something else in its place."""
    received: dict[tuple[str, int], Tensor] = {}
    uses = Counter[str]()

    def note(name: str, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not args or not isinstance(args[0], Tensor):
            return None
        number, uses[name] = uses[name], uses[name] + 1
        changed = None if change is None else change(name, number, args[0])
        if change is None or changed is not None:
            received[name, number] = args[0] if changed is None else changed
        return None if changed is None else (changed, *args[1:])

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if hasattr(module, "weight") and not list(module.children()):
                hooks.enter_context(module.register_forward_pre_hook(partial(note, name)))
        yield received


ROWS = (
    Method(
        "attattr",
        "AttAttr",
        "What the attention that the token receives adds to the logit, over all layers and heads; the sum over queries "
        "is ours.",
        "Hao et al. (2021)",
        attattr,
    ),
)
