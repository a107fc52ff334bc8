"""A language pair of a dozen words, and a recipe that learns some of it in a second."""

import shutil
from itertools import product

from normlens.nmt import Recipe

WORDS = {
    "der Hund": "the dog", "die Katze": "the cat", "das Pferd": "the horse", "der Vogel": "the bird",
    "sieht": "sees", "mag": "likes", "jagt": "chases", "ruft": "calls",
    "heute": "today", "nicht": "not", "immer": "always", "leise": "quietly",
}  # fmt: skip
SUBWORDS = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
ANIMALS, VERBS, ENDS = (list(WORDS)[at : at + 4] for at in (0, 4, 8))
TOY = Recipe(
    vocabulary=60,
    layers=1,
    width=16,
    heads=2,
    inner=32,
    dropout=0.1,
    smoothing=0.1,
    rate=1e-2,
    warmup=5,
    cooldown=0.2,
    tokens=200,
    longest=20,
    updates=30,
    every=10,
)


def toy_pairs(count=60):
    """Sentences such as ("Der Hund sieht die Katze, immer.", "The dog sees the cat, always.")."""
    chosen = list(product(ANIMALS, VERBS, ANIMALS, ENDS))[:: 256 // count][:count]
    return [(_sentence(words), _sentence([WORDS[word] for word in words])) for words in chosen]


def write_pairs(folder, pairs):
    """Two files, toy.de and toy.en."""
    for side, name in enumerate(("toy.de", "toy.en")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return folder / "toy.de", folder / "toy.en"


def begun(folder, other):
    """A folder that has the subwords of another, which take the longest to learn, and nothing else."""
    folder.mkdir()
    for name in SUBWORDS:
        shutil.copy(other / name, folder / name)
    return folder


def _sentence(words):
    text = "{} {} {}, {}.".format(*words)
    return text[0].upper() + text[1:]
