"""What the norms cost, as ratios measured side by side in one run.

    python benchmarks/core.py [--quick]

BERT-base shape, random weights. Against (a), the plain eager forward with attentions returned, and (b), the form that
builds α·f(x) as (batch, head, tgt, src, model).
"""

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import BertConfig, BertModel

import normlens as nl
from memory import peak_bytes
from normlens import algebra
from normlens.lens import Block, Lens

SETTINGS = [(threads, batch, length) for threads in (1, 2) for batch in (1, 8) for length in (128, 512)]
QUICK = [(1, 1, 128), (2, 1, 128), (2, 1, 512)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three settings instead of eight")
    quick = parser.parse_args().quick
    lens = bert()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, normlens {nl.__version__}, "
          f"{platform.machine()}; BERT-base shape, random weights, fp32\n")  # fmt: skip
    print("all four quantities of all 12 layers against (a) the plain eager forward with attentions returned")
    print("threads  batch    n   plain s  normlens s   ratio")
    for threads, batch, length in QUICK if quick else SETTINGS:
        torch.set_num_threads(threads)
        plain, ours = side_by_side(*forwards(lens, batch, length), rounds=max(2, 5000 // (batch * length)))
        print(f"{threads:7d} {batch:6d} {length:4d} {plain:9.3f} {ours:11.3f} {ours / plain:6.2f}x", flush=True)
    print("\nthe norm step alone, one layer, against (b) the materialised form")
    print("threads    n  materialised ms  normlens ms   ratio   largest relative difference")
    for threads, length in [(1, 128), (2, 128)] if quick else [(1, 128), (2, 128), (1, 512), (2, 512)]:
        torch.set_num_threads(threads)
        print(norm_step(threads, length), flush=True)
    print(f"\nheads that cancel but for 1e-4: largest relative difference to (b) {cancelling():.1e}")
    print("\npeak memory beyond (a), in units of one layer's α, results reduced layer by layer")
    torch.set_num_threads(1)
    for batch, length in [(1, 128), (1, 512)] if quick else [(1, 128), (8, 128), (1, 512), (8, 512)]:
        plain, ours = (peak_bytes(job) for job in forwards(lens, batch, length))
        alpha = batch * 12 * length * length * 4
        print(f"batch {batch}  n {length}:  plain {plain / 1e6:8.1f} MB  normlens {ours / 1e6:8.1f} MB  "
              f"beyond {(ours - plain) / alpha:+.2f} α", flush=True)  # fmt: skip


def bert() -> Lens:
    torch.manual_seed(0)
    return nl.load(BertModel(BertConfig(attn_implementation="eager")).eval())


def forwards(lens: Lens, batch: int, length: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The plain forward, and the same inputs with every quantity computed and reduced layer by layer."""
    ids = torch.randint(1000, 20000, (batch, length), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def plain() -> Any:
        with torch.no_grad():
            return lens.subject.model(**inputs, output_attentions=True)

    return plain, lambda: lens.each_block(all_four, inputs)


def all_four(block: Block) -> tuple[torch.Tensor, ...]:
    """Every quantity is asked for; what is kept is small."""
    quantities = (block.weights, block.transformed_norms, block.weighted_norms, block.summed_norms)
    return tuple(quantity[..., :1].clone() for quantity in quantities)


def side_by_side(left: Callable[[], Any], right: Callable[[], Any], *, rounds: int) -> tuple[float, float]:
    """Seconds of two jobs that take turns: the best round of each, which other work on the machine disturbed least."""
    times: tuple[list[float], list[float]] = ([], [])
    left(), right()
    for _ in range(rounds):
        for job, taken in zip((left, right), times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def norm_step(threads: int, length: int) -> str:
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(3 * torch.randn(1, 12, length, length, generator=generator), -1)
    values = torch.randn(1, 12, length, 64, generator=generator)
    out_weight = torch.randn(12, 64, 768, generator=generator) / 27
    slow, fast = side_by_side(
        lambda: materialised(weights, values, out_weight), lambda: norms(weights, values, out_weight), rounds=3
    )
    exact = materialised(weights.double(), values.double(), out_weight.double())
    gap = difference(norms(weights, values, out_weight), exact)
    return f"{threads:7d} {length:4d} {slow * 1e3:16.1f} {fast * 1e3:12.2f} {slow / fast:6.0f}x   {gap:.1e}"


def norms(weights: torch.Tensor, values: torch.Tensor, out_weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    pairs = algebra.gram(values, out_weight)
    length = algebra.transformed_norms(pairs)
    summed = algebra.summed_norms(weights, pairs, values, out_weight)
    return length, algebra.weighted_norms(weights, length), summed


def materialised(weights: torch.Tensor, values: torch.Tensor, out_weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(b): every vector α·f(x) written out, 64 queries at a time so that it fits in memory."""
    transformed = torch.einsum("bhsd,hdm->bhsm", values, out_weight)
    weighted, summed = [], []
    for rows in weights.split(64, dim=2):
        vectors = torch.einsum("bhts,bhsm->bhtsm", rows, transformed)
        weighted.append(vectors.norm(dim=-1))
        summed.append(vectors.sum(dim=1).norm(dim=-1))
    return transformed.norm(dim=-1), torch.cat(weighted, dim=2), torch.cat(summed, dim=1)


def difference(ours: tuple[torch.Tensor, ...], exact: tuple[torch.Tensor, ...]) -> float:
    return max(float(((a.double() - b) / b.clamp_min(1e-30)).abs().max()) for a, b in zip(ours, exact, strict=True))


def cancelling() -> float:
    """Heads in pairs that send opposite vectors with the same weight, up to one part in ten thousand."""
    generator = torch.Generator().manual_seed(1)
    half = torch.softmax(3 * torch.randn(1, 6, 128, 128, generator=generator), -1)
    weights = torch.cat([half, half], dim=1)
    values = torch.randn(1, 6, 128, 64, generator=generator).repeat(1, 2, 1, 1)
    matrix = torch.randn(6, 64, 768, generator=generator) / 27
    out_weight = torch.cat([matrix, -matrix * (1 + 1e-4 * torch.rand(6, 1, 768, generator=generator))])
    exact = materialised(weights.double(), values.double(), out_weight.double())
    return difference(norms(weights, values, out_weight), exact)


if __name__ == "__main__":
    main()
