"""What the parts of a layer cost, as ratios measured side by side in one run.

    python benchmarks/block.py [--quick]

1. BERT-base shape: weights, summed, residual and normed norms and mixing ratios of all layers, against the plain eager
   forward that returns attentions.
2. A model with a gate per coordinate before its output matrix: weighted and summed norms beside its own forward.
3. Feed-forward maps of all positions of one layer, against n plain passes of its feed-forward block.
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
from normlens import probes
from normlens.lens import Lens

MIXED = ("weights", "summed_norms", "residual_norms", "normed_norms", "mixing_attention", "mixing_residual",
         "mixing_normed")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, n = 128 only")
    quick = parser.parse_args().quick
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, normlens {nl.__version__}, "
          f"{platform.machine()}; random weights, fp32\n")  # fmt: skip
    lens = bert()
    print("weights, summed, residual and normed norms, mixing ratios of 12 layers, BERT-base shape, batch 1,")
    print("against the plain eager forward with attentions returned")
    print("threads    n   plain s  normlens s   ratio")
    for threads, length in ((1, 128), (2, 128)) if quick else ((1, 128), (2, 128), (1, 512), (2, 512)):
        torch.set_num_threads(threads)
        ids = {"input_ids": torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(0))}
        plain, ours = side_by_side(plain_forward(lens, ids), traced(lens, ids, MIXED), rounds=5 if quick else 9)
        print(f"{threads:7d} {length:4d} {plain:9.3f} {ours:11.3f} {ours / plain:6.2f}x", flush=True)
    torch.set_num_threads(2)
    gated(128 if quick else 512)
    feed_forward(lens, 128 if quick else 512)


def gated(length: int) -> None:
    """Qwen3-Next's attention, small: its gate multiplies every coordinate of what a head writes."""
    built = probes.build("qwen3_next")
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    ids = {"input_ids": torch.randint(3, 50, (1, length), generator=torch.Generator().manual_seed(0))}
    fields = ("weights", "weighted_norms", "summed_norms")
    plain, ours = side_by_side(plain_forward(lens, ids), traced(lens, ids, fields), rounds=3)
    peak = peak_bytes(traced(lens, ids, fields))
    heads, width = lens.subject.model.config.num_attention_heads, lens.subject.model.config.hidden_size
    print(f"\nqwen3_next built small ({heads} heads, {width} wide), n = {length}: forward {plain:.3f} s, with weighted and "
          f"summed norms {ours:.3f} s ({ours / plain:.1f}x), peak {peak / 2**20:.0f} MB; "
          f"the (head, n, n, d) form of one layer would be {heads * length**2 * width * 4 / 2**20:.0f} MB")  # fmt: skip


def feed_forward(lens: Lens, length: int) -> None:
    """output_norms of one layer: every key is sent through the feed-forward block of every query."""
    ids = {"input_ids": torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(0))}
    layer = lens.subject.model.encoder.layer[0]
    states = torch.randn(1, length, lens.subject.model.config.hidden_size)

    def passes() -> None:
        with torch.no_grad():
            for _ in range(length):
                layer.output.dense(layer.intermediate(states))

    plain, without = timed(passes), timed(traced(lens, ids, ("weights",), layers=0))
    ours = timed(traced(lens, ids, ("output_norms",), layers=0)) - without
    peak = peak_bytes(traced(lens, ids, ("output_norms",), layers=0))
    print(f"\noutput norms of one layer, BERT-base shape, n = {length}, 2 threads: {ours:.2f} s; n plain feed-forward "
          f"passes {plain:.2f} s: {ours / plain:.2f}x; peak {peak / 2**20:.0f} MB")  # fmt: skip


def bert() -> Lens:
    torch.manual_seed(0)
    model = BertModel(BertConfig(attn_implementation="eager")).eval()
    return nl.load(model, probe={"input_ids": torch.randint(1000, 2000, (2, 9))})


def plain_forward(lens: Lens, inputs: dict[str, Any]) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return lens.subject.model(**inputs, output_attentions=True)

    return run


def traced(lens: Lens, inputs: dict[str, Any], fields: tuple[str, ...], **more: Any) -> Callable[[], Any]:
    return lambda: lens.each_block(lambda block: [block[name] for name in fields if name in block.kept], inputs,
                                   fields=fields, **more)  # fmt: skip


def timed(job: Callable[[], Any]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def side_by_side(left: Callable[[], Any], right: Callable[[], Any], *, rounds: int) -> tuple[float, float]:
    """The best round of each, taking turns."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for at, job in enumerate((left, right)):
            best[at] = min(best[at], timed(job))
    return best[0], best[1]


if __name__ == "__main__":
    main()
