"""A short fine-tuning of the bundled MiniLM as a classifier, so that two models can be compared.

    python benchmarks/finetune.py sst2-train.tsv sst2-dev.tsv tuned [--steps 200] [--batch 16] [--rate 1e-4] [--seed 0]
    normlens study changes --set other=tuned --corpus sst2-dev.tsv --column 0

All weights are trained, with AdamW and a rate that falls linearly to 0; lines are `text<TAB>label`.
"""

import argparse
import random
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from normlens.models import default_folder, quiet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(default_folder())
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(default_folder(), num_labels=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=options.steps)
    train = labelled(options.train)
    model.train()
    for _ in range(options.steps):
        texts, labels = zip(*random.sample(train, options.batch), strict=True)
        inputs = tokenizer(list(texts), padding=True, truncation=True, max_length=64, return_tensors="pt")
        model(**inputs, labels=torch.tensor(labels)).loss.backward()
        optimizer.step()
        falling.step()
        optimizer.zero_grad()
    model.eval()
    right = 0
    dev = labelled(options.dev)
    for text, label in dev:
        with torch.no_grad():
            right += int(model(**tokenizer(text, return_tensors="pt")).logits.argmax()) == label
    print(f"{options.steps} steps of {options.batch} texts; accuracy on {options.dev.name} {right / len(dev):.3f}")
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)


def labelled(path: Path) -> list[tuple[str, int]]:
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(text, int(label)) for text, label in rows if label.isdecimal()]


if __name__ == "__main__":
    main()
