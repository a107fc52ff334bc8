"""What the study of sinks costs beside a plain forward pass with attentions, in processor time.

python benchmarks/sinks.py texts.jsonl [items]
"""

import sys
import time

import torch

import normlens as nl
from normlens.corpora import corpus
from normlens.studies import batches, request, study
from normlens.studies.report import chosen


def main() -> None:
    torch.set_num_threads(1)
    path, items = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64
    lens = nl.load()
    asked = request(lens, corpus(path), studies=chosen(("sinks",)), limit=items)
    listed = [item for item, _ in zip(asked.corpus, range(items), strict=False)]
    model = lens.subject.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    start = time.process_time()
    for batch in batches(lens.subject, listed, asked.categories, length=asked.length, tokens=asked.batch_tokens):
        with torch.no_grad():
            model(**batch.encoded.inputs, output_attentions=True)
    plain = time.process_time() - start
    model.set_attn_implementation(before)
    for studies in (("categories",), ("sinks",)):
        start = time.process_time()
        study(lens, path, studies=studies, limit=items)
        taken = time.process_time() - start
        print(
            f"{studies[0]}: {taken:.1f} s, {taken / plain:.2f} times the forward pass with attentions ({plain:.1f} s)"
        )


if __name__ == "__main__":
    main()
