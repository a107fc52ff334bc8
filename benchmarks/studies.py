"""What the studies of a corpus cost, as ratios measured side by side in one run.

    python benchmarks/studies.py CORPUS [--items 992] [--threads 2] [--studies a,b]

The four studies of the 2020 paper, or those named, from reading the corpus to the last number, against the plain eager
forward with attentions returned over the very same batches, which take turns with them. Memory is that of a process of
its own that studies only.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers import AutoModel, BertConfig, BertModel

import normlens as nl
from normlens.corpora import corpus
from normlens.lens import Lens
from normlens.models.default import default_folder
from normlens.studies import DEFAULT, STATISTICS, Batch, Request, Run, chosen, findings, request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--items", type=int, default=992)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--studies", default=",".join(DEFAULT), metavar="S,S")
    parser.add_argument("--only-study", nargs=2, metavar=("MODEL", "ITEMS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.only_study:
        model, items = options.only_study
        with tempfile.TemporaryDirectory() as folder:
            Timed(asked(lens_of(model), options, int(items)), None, Path(folder) / STATISTICS).whole()
        print(peak_resident())
        return
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, normlens {nl.__version__}, ", end="")
    print(f"{platform.machine()}, {options.threads} threads; {Path(options.corpus).name}, cut to 128 tokens")
    print(f"studies: {options.studies}\n")
    print("model            items    pairs   plain s  studies s   ratio   peak resident MB")
    for model, items in (
        ("MiniLM", options.items // 2),
        ("MiniLM", options.items),
        ("BERT-base", 50),
        ("BERT-base", 100),
    ):
        lens = lens_of(model)
        with tempfile.TemporaryDirectory() as folder:
            run = Timed(asked(lens, options, items), plain_of(model, lens), Path(folder) / STATISTICS)
            run.whole()
        again = ["--threads", str(options.threads), "--studies", options.studies, "--only-study", model, str(items)]
        job = [sys.executable, __file__, options.corpus, *again]
        memory = float(subprocess.run(job, check=True, capture_output=True, text=True).stdout)
        print(f"{model:14s} {run.counted['items']:7d} {run.counted['squares']:8d} {run.plain_seconds:9.2f} ", end="")
        print(f"{run.seconds:10.2f} {run.seconds / run.plain_seconds:6.2f}x {memory:18.0f}", flush=True)


def peak_resident() -> float:
    """Megabytes this process has held at most. Not ru_maxrss, which a child inherits from a large parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


class Timed(Run):
    """A run in which the plain model goes over each batch first."""

    def __init__(self, asked: Request, plain: torch.nn.Module | None, file: Path | None) -> None:
        super().__init__(asked, file)
        self.plain, self.plain_seconds, self.seconds = plain, 0.0, 0.0

    def whole(self) -> None:
        start = time.perf_counter()
        self.go()
        findings(self)
        self.seconds = time.perf_counter() - start - self.plain_seconds

    def _see(self, batch: Batch) -> None:
        if self.plain is not None:
            start = time.perf_counter()
            with torch.no_grad():
                self.plain(**batch.encoded.inputs, output_attentions=True)
            self.plain_seconds += time.perf_counter() - start
        super()._see(batch)


def asked(lens: Lens, options: argparse.Namespace, items: int) -> Request:
    return request(lens, corpus(options.corpus), studies=chosen(options.studies.split(",")), limit=items)


def lens_of(model: str) -> Lens:
    if model == "MiniLM":
        return nl.load()
    torch.manual_seed(0)
    return nl.load(BertModel(BertConfig()).eval(), nl.load().subject.tokenizer)


def plain_of(model: str, lens: Lens) -> torch.nn.Module:
    """The same model with eager attention, which is what returns attentions."""
    if model == "MiniLM":
        return AutoModel.from_pretrained(default_folder(), attn_implementation="eager").eval()
    plain = BertModel(BertConfig(attn_implementation="eager")).eval()
    plain.load_state_dict(lens.subject.model.state_dict())
    return plain


if __name__ == "__main__":
    main()
