"""What each method of attribution costs beside one forward pass, measured side by side in one run.

    python benchmarks/attribute.py [--lengths 32,128] [--methods decompx,alti] [--threads 2]

A classifier of BERT-base shape with random weights, one text. A row is one method: the best of three rounds in turn
with one plain forward pass (one round where it takes more than a minute), the time of n such passes, and the most
memory that tensors took at once.
"""

import argparse
import platform
import time

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification

import normlens as nl
from memory import peak_bytes
from normlens.attribution import METHODS
from normlens.lens import Lens

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="32,128,512", help="numbers of tokens, commas between")
    parser.add_argument("--methods", default=",".join(name for name in METHODS if name != "random"))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, normlens {nl.__version__}, "
          f"{platform.machine()}, {args.threads} threads; BERT-base shape, random weights, fp32\n")  # fmt: skip
    lens = classifier()
    print("   n  method                   forward s   method s  in forwards  in n forwards  peak MB")
    for length in map(int, args.lengths.split(",")):
        ids = {"input_ids": torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(0))}
        for method in args.methods.split(","):
            plain, ours, peak = measured(lens, ids, method)
            print(f"{length:4d}  {method:24s} {plain:9.3f} {ours:10.2f} {ours / plain:11.1f}x "
                  f"{ours / plain / length:13.2f}x {peak / 2**20:8.0f}", flush=True)  # fmt: skip


def measured(lens: Lens, ids: dict[str, torch.Tensor], method: str) -> tuple[float, float, int]:
    """Seconds of a forward pass and of the method, and the method's peak of memory."""

    def plain() -> None:
        with torch.no_grad():
            lens.subject.model(**ids)

    def ours() -> None:
        lens.attribute(ids, by=method)

    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for at, job in enumerate((plain, plain, ours)):
            started = time.perf_counter()
            job()
            best[at // 2] = min(best[at // 2], time.perf_counter() - started)
        if best[1] > 60:
            break
    return best[0], best[1], peak_bytes(ours) if best[1] < 60 else 0


def classifier() -> Lens:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig()).eval()
    return nl.load(model, probe={"input_ids": torch.randint(1000, 2000, (2, 9))})


if __name__ == "__main__":
    main()
