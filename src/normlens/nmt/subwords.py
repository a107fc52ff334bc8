"""Subword models, one per language, that read raw and tokenised text alike.

A subword model carries its own normalisation: letters are case-folded and brought to one form (NFKC), and every
punctuation mark or symbol stands alone, as if there were spaces around it. So "Ja, das!" and "ja , das !" give the
same pieces, and text from any word tokeniser can be aligned with a model that was trained on raw text.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import unicodedata
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from normlens.errors import NormlensError, first_line
from normlens.nmt.folder import write_text, writing

LIBRARIES = {"sentencepiece": "subwords", "sacrebleu": "BLEU scores"}
SPECIAL = ("</s>", "<unk>", "<pad>")  # ids 0, 1, 2 in either language
END, PAD = SPECIAL.index("</s>"), SPECIAL.index("<pad>")
QUOTES = dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛‹›′`´", "'") | dict.fromkeys("‐‑‒–—―−", "-") | {"…": "..."}
SKIPPED = (0xAC00, 0xD7A3)  # Hangul syllables: composed as they are
LAST = 0x2FFFF


class LibraryMissing(NormlensError, ImportError):
    """A library for translation models is not installed."""


def check_libraries(*names: str) -> None:
    """Refuse before the work when a library is missing; without names, both are asked for."""
    for name in names or LIBRARIES:
        try:
            import_module(name)
        except ImportError as error:
            raise LibraryMissing(
                f"Translation models need {name} for their {LIBRARIES[name]}, and {name} is not installed.",
                do="pip install 'normlens[nmt]'",
            ) from error


class SubwordError(NormlensError):
    """No subwords can be learned from this text."""


def train_subwords(lines: Iterable[str], prefix: Path, *, size: int, seed: int = 0) -> list[str]:
    """Train `prefix`.spm on the lines and return its pieces."""
    check_libraries("sentencepiece")
    import sentencepiece

    if size <= len(SPECIAL):
        raise SubwordError(
            f"A vocabulary of {size} subwords is too small for any text.",
            do="give a larger --vocabulary.",
        )
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text("".join(_rules()), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=model,
                model_type="bpe",
                vocab_size=size - len(SPECIAL) + 1,
                hard_vocab_limit=False,
                character_coverage=0.9998,
                normalization_rule_tsv=str(rules),
                bos_id=-1,
                eos_id=-1,
                minloglevel=3,
            )
        except RuntimeError as error:
            raise _no_subwords(error, size) from error
    with writing(prefix.parent):
        prefix.with_suffix(".spm").write_bytes(_without(model.getvalue(), rules))
    trained = sentencepiece.SentencePieceProcessor(model_file=str(prefix.with_suffix(".spm")))
    return [trained.id_to_piece(index) for index in range(trained.get_piece_size()) if not trained.is_unknown(index)]


def _without(model: bytes, path: Path) -> bytes:
    """The model with a filler in place of a path that sentencepiece noted: where it was trained does not matter."""
    name = str(path).encode()
    return model.replace(name, b"-" * len(name))


def write_vocabulary(pieces: list[str], path: Path) -> None:
    """Number the pieces as transformers' Marian tokenizer expects it."""
    numbers = {piece: index for index, piece in enumerate([*SPECIAL, *pieces])}
    write_text(path, json.dumps(numbers, ensure_ascii=False))


def _no_subwords(error: RuntimeError, size: int) -> SubwordError:
    letters = re.search(r"required_chars\. -?\d+ vs (\d+)", str(error))
    if letters:
        needed = int(letters[1]) + len(SPECIAL) - 1
        return SubwordError(
            f"A vocabulary of {size} subwords is too small for this text, which needs {needed} for its letters alone.",
            do=f"give --vocabulary {needed} or more.",
        )
    return SubwordError(
        "No subwords can be learned from this text.",
        got=first_line(error),
        cause="every line is longer than 4,000 bytes.",
        do="give one sentence a line.",
    )


def _rules() -> Iterable[str]:
    rules: dict[str, str] = {}
    for code in range(0x01, LAST):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Cs", "Co") or SKIPPED[0] <= code <= SKIPPED[1]:
            continue
        text = _normal(character, category)
        rules |= {form: text for form in (character, unicodedata.normalize("NFD", character)) if form != text}
    return (_rule(before, after) for before, after in rules.items())


def _normal(character: str, category: str) -> str:
    if category in ("Cc", "Cf"):
        return " " if character.isspace() else ""
    if category[0] == "Z":
        return " "
    text = QUOTES.get(character) or unicodedata.normalize("NFKC", character.casefold()).casefold()
    if category[0] in "PS":
        return f" {' '.join(text.replace(' ', ''))} "
    return text


def _rule(before: str, after: str) -> str:
    return " ".join(f"{ord(c):X}" for c in before) + "\t" + " ".join(f"{ord(c):X}" for c in after) + "\n"
