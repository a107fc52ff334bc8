"""A BERT made by hand with a head for each role.

A hidden state is the sum of one-hot vectors: the word, the position, the segment, and, after layer 0, the word before.
Every token then has as many ones, so that the norm of the embeddings can be undone. Scores are sums of matches between
parts of the query and parts of the key, times so much that the softmax leaves next to nothing elsewhere.
"""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

import normlens as nl

HEADS = {
    "previous": (0, 0),
    "repeat": (0, 1),
    "sentence": (0, 2),
    "one token": (0, 3),
    "no-op": (0, 4),
    "broadcast": (0, 5),
    "spread": (0, 6),
    "induce": (1, 0),
}
WORDS = "[PAD] [CLS] [SEP] [UNK] . river".split() + [f"w{n}" for n in range(34)]
SIZE, POSITIONS, HEAD_DIM = len(WORDS), 48, 88  # words and positions side by side fill a head
WORD, POSITION, SEGMENT = slice(0, SIZE), slice(SIZE, SIZE + POSITIONS), slice(SIZE + POSITIONS, SIZE + POSITIONS + 2)
BEFORE = slice(SEGMENT.stop, SEGMENT.stop + SIZE)  # where layer 0 writes the word before
WIDTH = 7 * HEAD_DIM
SHARP = 30.0
RIVER, CLS = WORDS.index("river"), WORDS.index("[CLS]")


def tokenizer():
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", CLS), ("[SEP]", 2)]
    )
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_input_names=inputs, **special)


def texts(items=12):
    """Pairs of sentences: words of which a few come twice, in the same order, and one river."""
    random = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(items):
        order = (6 + torch.randperm(34, generator=random)).tolist()
        run = order[:3]
        first = [*run, *order[3:10]]
        second = [*order[10:14], RIVER, *run, *order[14:17]]
        pairs.append(tuple(" ".join(WORDS[word] for word in words) + " ." for words in (first, second)))
    return pairs


def lens():
    config = BertConfig(
        vocab_size=SIZE, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=7, intermediate_size=4,
        max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = BertModel(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        _embed(model.embeddings)
        for layer in model.encoder.layer:
            layer.attention.output.LayerNorm.weight.fill_(1.0)
            layer.output.LayerNorm.weight.fill_(1.0)
        first, second = (Heads(layer.attention) for layer in model.encoder.layer)
        _previous(first)
        _repeat(first)
        _sentence(first)
        _one_token(first)
        _parked(first)
        first.values(6, WORD, range(SIZE), into=WIDTH - 60)  # spreads over all keys
        _induce(second)
        for head in range(1, 7):
            second.values(head, WORD, range(SIZE), into=WIDTH - 60)
    return nl.load(model, tokenizer())


def _embed(embeddings):
    embeddings.word_embeddings.weight[:, WORD] = torch.eye(SIZE)
    embeddings.position_embeddings.weight[:, POSITION] = torch.eye(POSITIONS)
    embeddings.token_type_embeddings.weight[:, SEGMENT] = torch.eye(2)
    ones = torch.zeros(WIDTH)
    ones[:3] = 1
    embeddings.LayerNorm.weight.fill_(float(ones.std(correction=0)))
    embeddings.LayerNorm.bias.fill_(float(ones.mean()))


class Heads:
    """The weights of a layer, head by head."""

    def __init__(self, attention):
        self.query, self.key, self.value = attention.self.query, attention.self.key, attention.self.value
        self.out = attention.output.dense

    def match(self, head, query, key, part, *, times=SHARP, shift=0, at=0):
        """The score grows by `times` where part `query` of the query is part `key` of the key, `shift` further on."""
        size = part.stop - part.start
        rows = range(head * HEAD_DIM + at, head * HEAD_DIM + at + size)
        for place, row in enumerate(rows):
            self.key.weight[row, key.start + place] = 1.0
            if 0 <= place - shift < size:
                self.query.weight[row, query.start + place - shift] = times * HEAD_DIM**0.5

    def prefer(self, head, column, *, times=SHARP, at=0):
        """The score of the keys with this coordinate grows by `times`, whatever the query."""
        row = head * HEAD_DIM + at
        self.key.weight[row, column] = 1.0
        self.query.bias[row] = times * HEAD_DIM**0.5

    def values(self, head, part, places, *, into, times=1.0):
        """f(x) is these places of a part of the key, written from the coordinate `into` on."""
        for row, place in enumerate(places):
            self.value.weight[head * HEAD_DIM + row, part.start + place] = times
            self.out.weight[into + row, head * HEAD_DIM + row] = 1.0


def _previous(heads):
    heads.match(0, POSITION, POSITION, POSITION, shift=-1)
    heads.values(0, WORD, range(SIZE), into=BEFORE.start)


def _repeat(heads):
    heads.match(1, WORD, WORD, WORD)
    heads.match(1, POSITION, POSITION, POSITION, times=-2 * SHARP, at=SIZE)
    heads.values(1, WORD, range(SIZE), into=WIDTH - 110)


def _sentence(heads):
    heads.match(2, SEGMENT, SEGMENT, SEGMENT)
    heads.values(2, SEGMENT, range(2), into=WIDTH - 120)


def _one_token(heads):
    heads.prefer(3, WORD.start + RIVER, times=5.0)
    heads.match(3, POSITION, POSITION, POSITION, times=3.5, at=SIZE)  # a little on the token itself
    heads.values(3, WORD, range(SIZE), into=WIDTH - 60)


def _parked(heads):
    for head, places in ((4, [word for word in range(SIZE) if word != CLS]), (5, [CLS, *range(SIZE)])):
        heads.prefer(head, POSITION.start, times=6.0)
        heads.values(head, WORD, places, into=WIDTH - 60)


def _induce(heads):
    heads.match(0, WORD, BEFORE, WORD, times=10 * SHARP)
    for place in range(POSITIONS):  # keys that are not later than the query; without an earlier copy, itself
        row = SIZE + place
        heads.key.weight[row, POSITION.start + place] = 1.0
        heads.query.weight[row, POSITION.start + place :][: POSITIONS - place] = 20 * SHARP * HEAD_DIM**0.5
    heads.values(0, WORD, range(SIZE), into=WIDTH - 60)
