"""Importance of heads, against finite differences and plain loops, and where one head alone decides."""

import json

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
)

import normlens as nl
from normlens.corpora import CorpusError, corpus
from normlens.signature import Signature
from normlens.studies import Facts, ImportanceStudy, StudyError, chosen, importance, run, study

FACTS = Facts(None, "made", "by hand", Signature(()), ("other",), None, 0, 8)

LABELLED = [
    {"text": "a good film", "label": 1},
    {"text": "a bad film that nobody wants to see twice", "label": 0},
    {"text": "why not", "label": 0},
]
PAIRS = [("the mill stood by the river", "seven eight"), ("no pause", "nobody believed it, why would they")]
SMALL = {"vocab_size": 30522, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
SMALL |= {"intermediate_size": 16, "max_position_embeddings": 32, "initializer_range": 0.4}
MARIAN = {
    "vocab_size": 30522, "d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
    "pad_token_id": 0, "eos_token_id": 102, "decoder_start_token_id": 0, "forced_eos_token_id": 102, "init_std": 0.4,
}  # fmt: skip


def made(name, tokenizer):
    """A small untrained model in double precision."""
    torch.manual_seed(0)
    if name == "classification":
        model = BertForSequenceClassification(BertConfig(**SMALL))
    elif name == "masked":
        model = BertForMaskedLM(BertConfig(**SMALL))
    elif name == "causal":
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=30522, n_positions=32, n_embd=12, n_layer=2, n_head=3, bos_token_id=101, eos_token_id=102
            )
        )
    else:
        model = MarianMTModel(MarianConfig(**MARIAN))
    return nl.load(model.double().eval(), tokenizer)


def given(name):
    return {"classification": LABELLED, "translation": PAIRS}.get(name, [row["text"] for row in LABELLED])


def output_matrices(lens):
    return {(wire.kind, wire.layer): wire.out.removesuffix(".weight") for wire in lens.wires}


def loss_with(lens, inputs, wanted, scale):
    """The loss of one sequence when the rows of W_O that read a head are scaled: the weights themselves are changed."""
    (kind, layer, head, heads), value = scale
    module = lens.subject.model.get_submodule(output_matrices(lens)[kind, layer])
    weight = module.weight.data
    reads = 0 if type(module).__name__ == "Conv1D" else 1
    width = weight.shape[reads] // heads
    kept = weight.clone()
    weight.narrow(reads, head * width, width).mul_(value)
    with torch.no_grad():
        logits = lens.subject.model(**inputs).logits[0]
    weight.copy_(kept)
    chances = logits.reshape(-1, logits.shape[-1]).log_softmax(-1)
    return -float(np.mean([chances[place, token] for place, token in wanted]))


def asked(lens, name, item):
    """Inputs of one item, and (position, right id) of what it should predict, written out."""
    tokenizer = lens.subject.tokenizer
    if name == "classification":
        return tokenizer(item["text"], return_tensors="pt"), [(0, item["label"])]
    if name == "causal":
        ids = tokenizer(item)["input_ids"]
        return tokenizer(item, return_tensors="pt"), list(enumerate(ids[1:]))
    source, target = (tokenizer(text)["input_ids"] for text in item)
    inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([[0, *target[:-1]]])}
    return inputs, list(enumerate(target))


@pytest.mark.parametrize("name", ["classification", "causal", "translation"])
def test_scores_are_finite_differences_of_the_gate_one_sequence_and_one_head_at_a_time(minilm, name):
    lens = made(name, minilm.subject.tokenizer)
    results = study(lens, corpus(given(name), label_column="label" if name == "classification" else None),
                    studies=(ImportanceStudy(name),))["importance"]  # fmt: skip
    step = 1e-5
    for kind, result in results.items():
        assert np.isfinite(result.raw).all()
        for place, head in np.ndindex(result.raw.shape):
            block = kind, result.layers[place], head, result.raw.shape[1]
            slopes = []
            for item in given(name):
                up, down = (loss_with(lens, *asked(lens, name, item), (block, 1 + s)) for s in (step, -step))
                slopes.append(abs(up - down) / (2 * step))
            assert result.raw[place, head] == pytest.approx(np.mean(slopes), rel=1e-5, abs=1e-9), (kind, place, head)


def test_leave_one_out_and_curves_are_those_of_a_model_whose_weights_are_set_to_0(minilm):
    lens = made("classification", minilm.subject.tokenizer)
    result = importance(lens, LABELLED, fractions=(0, 0.5, 1), seeds=1)
    plain = np.mean([loss_with(lens, *asked(lens, "classification", r), (("self", 0, 0, 3), 1)) for r in LABELLED])
    assert result.loss == pytest.approx(plain, rel=1e-12)
    for (kind, layer, head), loss in zip(result.heads, result.losses_without, strict=True):
        block = kind, layer, head, 3
        slowly = [loss_with(lens, *asked(lens, "classification", row), (block, 0)) for row in LABELLED]
        assert loss == pytest.approx(np.mean(slowly), rel=1e-9)
    for curve in result.curves:
        assert curve.removed.tolist() == [0, 3, 6]
        assert curve.losses[0] == pytest.approx(result.loss)
    last = [curve.losses[-1] for curve in result.curves]
    assert last == pytest.approx([last[0]] * len(last))  # without every head, whatever the order was


def test_batches_change_no_score(minilm):
    for name in ("classification", "masked", "translation"):
        lens = made(name, minilm.subject.tokenizer)
        texts = corpus(given(name), label_column="label" if name == "classification" else None)
        together, alone = (
            study(lens, texts, studies=(ImportanceStudy(name),), batch_tokens=tokens)["importance"]
            for tokens in (4096, 1)
        )
        for kind, result in together.items():
            np.testing.assert_allclose(result.raw, alone[kind].raw, rtol=1e-9)
            np.testing.assert_allclose(result.by_token, alone[kind].by_token, rtol=1e-9)
            assert result.loss == pytest.approx(alone[kind].loss)


def deciding(tokenizer, layer, head):
    """A classifier in which one head alone reaches the class: the rows of W_O of all other heads are 0."""
    lens = made("classification", tokenizer)
    for number, block in enumerate(lens.subject.model.bert.encoder.layer):
        block.intermediate.dense.weight.data.zero_()
        block.output.dense.weight.data.zero_()
        kept = block.attention.output.dense.weight.data[:, head * 4 : (head + 1) * 4].clone()
        block.attention.output.dense.weight.data.zero_()
        if number == layer:
            block.attention.output.dense.weight.data[:, head * 4 : (head + 1) * 4] = kept
    return lens


def test_where_one_head_decides_it_has_all_of_the_importance(minilm):
    lens = deciding(minilm.subject.tokenizer, layer=1, head=2)
    result = importance(lens, LABELLED, orders=("importance", "leave_one_out"), fractions=(0, 5 / 6, 1))
    scores = result.scores["self"]
    assert scores.raw[1, 2] > 0
    assert np.count_nonzero(scores.raw) == 1
    assert scores.normalised[1, 2] == pytest.approx(1)
    changed = np.abs(result.losses_without - result.loss) > 1e-12
    assert [head for head, differs in zip(result.heads, changed, strict=True) if differs] == [("self", 1, 2)]
    by_score = result.curves[0]
    assert by_score.losses[1] == pytest.approx(result.loss)  # five of six heads removed, the deciding one kept
    assert by_score.losses[2] != pytest.approx(result.loss)
    assert "1 of 6 heads hold half of the importance; the most important is L1H2 with 100 %" in str(
        ImportanceStudy().section(scores, FACTS).sentences[0]
    )


def test_a_run_that_is_continued_has_the_same_bytes(minilm, tmp_path, monkeypatch):
    lens = made("classification", minilm.subject.tokenizer)
    texts = [dict(row, text=f"{row['text']} {number}") for number in range(40) for row in LABELLED]
    whole = study(lens, corpus(texts, label_column="label"), studies=("importance",), folder=tmp_path / "whole")

    class Stop(Exception):
        pass

    seen = []

    def stop(done, total):
        seen.append(done)
        if sum(seen) > 70:
            raise Stop

    monkeypatch.setattr(run, "SAVE", -1.0)
    with pytest.raises(Stop):
        study(
            lens, corpus(texts, label_column="label"), studies=("importance",), folder=tmp_path / "cut", progress=stop
        )
    again = study(
        lens, corpus(texts, label_column="label"), studies=("importance",), folder=tmp_path / "cut", resume=True
    )
    assert np.array_equal(whole["importance"]["self"].raw, again["importance"]["self"].raw)
    assert (tmp_path / "whole" / "run.safetensors").read_bytes() == (tmp_path / "cut" / "run.safetensors").read_bytes()


def test_a_result_says_itself_in_rows_words_and_a_page(minilm, tmp_path):
    lens = made("classification", minilm.subject.tokenizer)
    told = []
    result = importance(
        lens, LABELLED, fractions=(0, 1), seeds=2, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1][0] == told[-1][1] == 3 * (7 + 2 * 5)
    rows = result.rows()
    assert len(rows) == 6
    assert {"kind", "layer", "head", "importance", "importance_raw", "contribution_norms", "loss_change"} <= set(
        rows[0]
    )
    assert result.to_dataframe().shape[0] == 6
    page = result.save(tmp_path)
    assert (tmp_path / "figures" / "pruning.png").exists()
    assert "Importance of heads" in page.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "tables" / "importance_of_heads.json").read_text(encoding="utf-8")) == rows


def test_what_has_no_loss_is_refused_with_what_to_do(minilm):
    with pytest.raises(StudyError, match="predicts nothing"):
        study(minilm, ["a text"], studies=("importance",))
    lens = made("classification", minilm.subject.tokenizer)
    with pytest.raises(StudyError, match="has no label"):
        study(lens, ["a text"], studies=("importance",))
    with pytest.raises(StudyError, match="no class for the label 'maybe'"):
        importance(lens, [{"text": "a text", "label": "maybe"}])
    with pytest.raises(StudyError, match="has no causal loss"):
        importance(lens, LABELLED, loss="causal")
    with pytest.raises(StudyError, match="There is no loss 'joy'"):
        importance(lens, LABELLED, loss="joy")
    with pytest.raises(StudyError, match="cannot be removed by 'age'"):
        importance(lens, LABELLED, orders=("age",))
    half = nl.load(BertForSequenceClassification(BertConfig(**SMALL)).half().eval(), minilm.subject.tokenizer)
    with pytest.raises(StudyError, match="small gradients are lost"):
        study(half, corpus(LABELLED, label_column="label"), studies=("importance",))


def test_labels_come_from_a_column_of_any_format(tmp_path):
    (tmp_path / "a.tsv").write_text("a good film\t1\nbad\t0\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("label,text\n1,a good film\n0,bad\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('{"text": "a good film", "label": 1}\n{"text": "bad", "label": 0}\n')
    for name, columns in (("a.tsv", (0, 1)), ("b.csv", ("text", "label")), ("c.jsonl", ("text", "label"))):
        items = list(corpus(tmp_path / name, column=columns[0], label_column=columns[1]))
        assert [(item.texts, item.label) for item in items] == [(("a good film",), "1"), (("bad",), "0")]
    streamed = corpus(iter(LABELLED), label_column="label")
    assert [item.label for item in streamed] == [item.label for item in streamed] == ["1", "0", "0"]
    with pytest.raises(CorpusError, match="no field 'label'"):
        list(corpus(["a text"], label_column="label"))
    with pytest.raises(CorpusError, match="has no column 'label'"):
        list(corpus(tmp_path / "a.tsv", column=0, label_column="label"))


def test_one_of_our_studies_with_other_choices_takes_the_place_of_the_default():
    assert chosen((ImportanceStudy("masked"),))[0].loss == "masked"
    with pytest.raises(StudyError, match="already a study called 'importance'"):
        chosen(("importance", ImportanceStudy("masked")))


def test_a_model_that_is_never_right_has_no_accuracy_to_keep(minilm):
    wrong = [{**row, "label": 1 - row["label"]} for row in LABELLED if row["label"] == 0]
    lens = made("classification", minilm.subject.tokenizer)
    with torch.no_grad():
        lens.subject.model.classifier.bias.copy_(torch.tensor([100.0, -100.0]))
    result = importance(lens, wrong, fractions=(0, 1), seeds=1)
    assert result.accuracy == 0
    assert "The whole model is never right" in result.show()
    assert "of the accuracy is left" not in result.show()
