"""What the studies of heads cost, each alone and all together, as ratios measured side by side in one run.

    python benchmarks/heads.py CORPUS [--items 100] [--threads 2]

Against the plain eager forward with attentions returned over the very same batches, which take turns with them; from
reading the corpus to the last number. The studies are those of `nl.heads` that need neither gradients nor more passes.
"""

import argparse
import platform
import tempfile
from pathlib import Path

import torch
import transformers

import normlens as nl
from normlens.corpora import corpus
from normlens.studies import HEAD_STUDIES, STATISTICS, chosen, request
from studies import Timed, lens_of, plain_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, normlens {nl.__version__}, ", end="")
    print(f"{platform.machine()}, {options.threads} threads; {Path(options.corpus).name}, cut to 128 tokens\n")
    print("model       items  studies                 plain s  studies s   ratio")
    every = tuple(name for name in HEAD_STUDIES if name != "importance")
    for model, items in (("MiniLM", options.items), ("BERT-base", options.items // 4)):
        lens = lens_of(model)
        plain = plain_of(model, lens)
        for studies in (*((name,) for name in every), every):
            with tempfile.TemporaryDirectory() as folder:
                asked = request(lens, corpus(options.corpus), studies=chosen(studies), limit=items)
                run = Timed(asked, plain, Path(folder) / STATISTICS)
                run.whole()
            name = studies[0] if len(studies) == 1 else f"all {len(studies)}"
            print(f"{model:10s} {items:6d}  {name:20s} {run.plain_seconds:10.2f} {run.seconds:10.2f} ", end="")
            print(f"{run.seconds / run.plain_seconds:6.2f}x", flush=True)


if __name__ == "__main__":
    main()
