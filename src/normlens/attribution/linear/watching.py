"""Watch one pass of a model, and write down how its logits are made of the tokens, as a program of linear steps.

A torch function mode that sees every call. Nothing of a model's code is matched: each tensor made of the tokens carries
a label, each call has a rule, and every step that is written down must give what the model computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from normlens.algebra import Rule, activation_shares
from normlens.attribution.linear.labels import Carried, Cells, Frozen, Ids, Label, Lost, Own
from normlens.attribution.linear.steps import Act, Active, Scaled, Seed, Step
from normlens.capture import (
    attention_weights,
    beyond_reading,
    called,
    fresh,
    implementations,
    is_in_place,
    module_path,
    relative_error,
    switched,
    tensors_in,
    tolerance,
    vocabulary,
)
from normlens.models import as_found, one_at_a_time, takes_by_name

MARK = "_normlens_part"
NUMBERS = frozenset("item tolist numpy __float__ __array__".split())
STARTS = {
    "input_ids": Ids("text"),
    "decoder_input_ids": Ids("written"),
    "inputs_embeds": Own("text"),
    "decoder_inputs_embeds": Own("written"),
}
Rules = Callable[["Watch", str, Any, tuple[Any, ...], dict[str, Any], Any], Any]


class Watch(TorchFunctionMode):
    """The labels of one pass, and the program written so far. What no seen call has made is of unknown origin."""

    def __init__(self, rules: Rules, where: Callable[[], str], *, gated: Rule, known: Iterable[Tensor]) -> None:
        super().__init__()
        self.rules, self.where, self.gated = rules, where, gated
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known if tensor.device.type != "meta"}
        self.steps: list[Step] = []
        self.left: Lost | None = None  # where a number made of the tokens left torch
        self.token = object()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = called(func)
        is_of_tokens = any(self.label(part) is not None for part in tensors_in((args, kwargs)))
        if name in NUMBERS and is_of_tokens and args[0].is_floating_point():
            self.left = self.left or self.lost(f"its numbers leave torch by '{name}'")
        if name in vocabulary.LOOKS or not is_of_tokens:
            result = func(*args, **kwargs)
            for part in tensors_in(result):
                self.put(part, None)
            return result
        if name == "scaled_dot_product_attention":
            return self._fused(func, args, kwargs)
        given = args
        if is_in_place(name) or name == "__setitem__":
            given = (self.copy(args[0]), *args[1:])
        result = func(*args, **kwargs)
        label = self.rules(self, name, func, given, kwargs, result)
        if name == "__setitem__":
            self.put(args[0], label)
        elif isinstance(label, list):
            for part, of_part in zip(result, label, strict=True):
                self.put(part, of_part)
        else:
            for part in tensors_in(result):
                self.put(part, label)
        return result

    def _fused(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        _, weights, values = attention_weights(*args, **kwargs)
        self.put(weights, Frozen())
        value = args[2] if len(args) > 2 else kwargs["value"]
        if values is not value:
            count = values.shape[-3] // value.shape[-3]
            with self:
                values = value.repeat_interleave(count, -3)
        else:
            self.put(values, self.label(value))
        result = func(*args, **kwargs)
        self.put(result, self.rules(self, "matmul", torch.matmul, (weights, values), {}, result))
        return result

    def copy(self, tensor: Tensor) -> Tensor:
        """What a call that writes in place would destroy."""
        kept, label = tensor.detach().clone(), self.label(tensor)
        self.put(kept, label)
        return kept

    def put(self, tensor: Any, label: Label | None) -> None:
        if isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
            setattr(tensor, MARK, (self.token, tensor._version, label))

    def label(self, tensor: Any) -> Label | None:
        if not isinstance(tensor, Tensor) or isinstance(tensor, nn.Parameter):
            return None
        kept = getattr(tensor, MARK, None)
        if kept is None or kept[0] is not self.token:
            known = not tensor.is_floating_point() or tensor.untyped_storage().data_ptr() in self.known
            return None if known else self.lost("it meets a tensor that no call of torch has made")
        if kept[1] != tensor._version and kept[2] is not None:
            return self.lost("a tensor of it is written over")
        return kept[2]

    def lost(self, reason: str) -> Lost:
        return Lost(reason, self.where())

    def emit(
        self, act: Act, reads: tuple[int, ...], wholes: tuple[Tensor, ...], result: Tensor, added: Any = None
    ) -> Label:
        """Write down a step, which must make of the whole tensors what the model made of them."""
        made = act(*(whole.detach()[None] for whole in wholes))[0]
        made = made if added is None else made + added
        if made.shape != result.shape or not relative_error(made, result) <= 10 * tolerance(result.dtype):
            return self.lost("a step of it does not give what the model computed")
        return self._write(act, reads, result.shape, added)

    def _write(self, act: Act, reads: tuple[int, ...], shape: tuple[int, ...], added: Any) -> Carried:
        if isinstance(added, (int, float)):
            added = torch.tensor(float(added)) if added else None
        self.steps.append(Step(act, reads, len(self.steps), tuple(shape), added, self.where()))
        return Carried(len(self.steps) - 1)

    def register(self, tensor: Tensor) -> int | Lost:
        """The number of a tensor in the program; what is not in it yet is written there."""
        label = self.label(tensor)
        if isinstance(label, Own):
            made: Label = self._write(Seed(tensor.detach().clone(), label.side), (), tensor.shape, None)
        elif isinstance(label, Carried) and label.factor != 1:
            made = self._write(Scaled(label.factor), (label.register,), tensor.shape, None)
        elif isinstance(label, Cells):
            zero = label.again(torch.zeros_like(label.of.reshape(-1)[:1]))
            share = activation_shares(label.of, tensor.detach(), label.again)
            made = self.emit(Active(share), (label.register,), (label.of,), tensor, float(zero))
        else:
            made = label if isinstance(label, (Carried, Lost)) else self.lost("it is no sum over tokens")
        self.put(tensor, made)
        return made.register if isinstance(made, Carried) else made  # pyright: ignore


def watched(model: nn.Module, inputs: Mapping[str, Any], rules: Rules, *, gated: Rule) -> tuple[Watch, Any]:
    """One pass of the model with eager attention, as it was found before and after."""
    users, _ = beyond_reading(model)
    eager = [name for name in implementations(model) if name not in users]
    given = fresh(inputs)
    if takes_by_name(model, "use_cache"):
        given["use_cache"] = False
    with _plainly(), one_at_a_time(True), as_found(model), switched(model, eager), module_path(model, {}) as where:
        watch = Watch(rules, where, gated=gated, known=_lasting(model, given))
        for name, label in STARTS.items():
            watch.put(given.get(name), label)
        with watch:
            output = model(**given)
    return watch, output


def _lasting(model: nn.Module, inputs: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors that are there before a pass."""
    yield from tensors_in(inputs)
    for module in model.modules():
        yield from tensors_in([vars(module), module._parameters, module._buffers])


@contextmanager
def _plainly() -> Iterator[None]:
    with torch.inference_mode(False), torch.no_grad(), torch.compiler.set_stance("force_eager"):
        yield
