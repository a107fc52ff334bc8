"""Rows and columns that are no words keep their places and are never called by a word."""

import pytest
from proving import FIELDS, check
from reading_modules import READERS, WORDS, VirtualKeys, WindowForEveryWord, references

import normlens as nl
from normlens.lens.pictured import NothingToShow

readers = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)


def spelled(model):
    """Every word of the first sequence, by its side and place, as a trace without a tokenizer writes it."""
    ids = model.inputs()
    seq2seq = "decoder_input_ids" in ids
    names = {("source" if seq2seq else "text", i): str(int(w)) for i, w in enumerate(ids["input_ids"][0])}
    if seq2seq:
        names |= {("target", i): str(int(w)) for i, w in enumerate(ids["decoder_input_ids"][0])}
    return names


def never_called_by_another(names, owners, words):
    """A name is the own word's, or no word at all."""
    assert len(names) == len(owners)
    for name, owner in zip(names, owners, strict=True):
        assert name not in set(words.values()) - {words.get(owner)}, f"{owner} is called {name!r}"


def opened(reader):
    """The model and its trace."""
    model = reader()
    try:
        return model, nl.load(model, probe=model.probe()).trace(model.inputs(), fields=FIELDS)
    except nl.ReconstructionError:
        if not reader.refusable:
            raise
        pytest.skip("refused, as it may be")


@readers
def test_no_position_is_cut_off(reader):
    model, trace = opened(reader)
    if reader is WindowForEveryWord and len(trace.blocks[0].weights) == model.batch:
        return  # put together again to one map, which `test_modules` knows
    check(trace.blocks, references(model))
    if reader is not WindowForEveryWord:
        for block, (tgt, src) in zip(trace[0].blocks, reader.blocks, strict=True):
            assert block.weights.shape == (1, 2, len(tgt), len(src))


@readers
def test_a_table_calls_no_position_by_the_word_of_another(reader):
    model, trace = opened(reader)
    table, words = trace[0].to_dataframe(), spelled(model)
    for (_, rows), (tgt, src) in zip(table.groupby(["kind", "layer"], sort=False), reader.blocks, strict=True):
        for axis, owners in (("tgt", tgt), ("src", src)):
            names = rows.drop_duplicates(axis).sort_values(axis)[f"{axis}_token"]
            never_called_by_another(names.astype(str).tolist(), owners, words)


@readers
def test_a_figure_calls_no_position_by_the_word_of_another(reader):
    model, trace = opened(reader)
    words, order = spelled(model), [(block.kind, block.label) for block in trace.blocks]
    try:
        figure = trace.figure()
    except NothingToShow:
        return
    for panel in figure.panels:
        tgt, src = reader.blocks[order.index((panel.kind, panel.name))]
        never_called_by_another(figure.sides[panel.tgt].tokens, tgt, words)
        never_called_by_another(figure.sides[panel.src].tokens, src, words)


def test_words_beside_virtual_keys_are_still_called_by_their_names():
    model, trace = opened(VirtualKeys)
    table = trace[0].to_dataframe()
    names = table.drop_duplicates("tgt").sort_values("tgt")["tgt_token"].tolist()
    assert names == [spelled(model)["text", i] for i in range(WORDS)]
