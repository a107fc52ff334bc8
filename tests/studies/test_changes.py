"""Two models compared: a model against itself, against a copy with one head changed, and against plain loops."""

import copy

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine, jensenshannon
from tokenizers.normalizers import NFC
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel, GPT2Config, GPT2LMHeadModel

import normlens as nl
from normlens.cli.main import main
from normlens.studies import ChangesStudy, StudyError, study
from normlens.studies.changes import cosines, divergences

TEXTS = ["The cat saw the dog, and the dog saw the cat. It ran!", "No. Yes, no.", "Rain fell on the grey sea."]
MEASURES = ("weights", "norms")


def small_bert(seed=0, layers=2, heads=3):
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=30522, hidden_size=24, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=16,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    return BertModel(config).eval()


@pytest.fixture(scope="module")
def bert(minilm):
    return nl.load(small_bert(), minilm.subject.tokenizer)


def compared(lens, other, texts=TEXTS, **options):
    return study(lens, texts, studies=(ChangesStudy(other=other),), **options)["changes"]


def test_a_model_against_itself_has_cosine_1_and_divergence_0(bert):
    result = compared(bert, bert)["self"]
    for measure in MEASURES:
        np.testing.assert_allclose(result.cosine[measure], 1, atol=1e-12)
        assert (result.divergence[measure] == 0).all()
    assert result.sequences == len(TEXTS)


def test_a_change_of_one_head_changes_this_head_and_the_layers_above(bert, minilm):
    """The query of head 1 of layer 1, the last layer: no other map can change, and its contributions follow."""
    model = copy.deepcopy(bert.subject.model)
    with torch.no_grad():
        model.encoder.layer[1].attention.self.query.weight[8:16].normal_()
    result = compared(bert, nl.load(model, minilm.subject.tokenizer))["self"]
    for measure in MEASURES:
        changed = result.divergence[measure] > 1e-4
        assert changed.tolist() == [[False] * 3, [False, True, False]]
        assert (result.cosine[measure] < 1 - 1e-4).tolist() == changed.tolist()
    with torch.no_grad():
        model.encoder.layer[0].attention.self.query.weight[:8].normal_()
    result = compared(bert, nl.load(model, minilm.subject.tokenizer))["self"]
    assert (result.divergence["weights"] > 1e-4).tolist() == [[True, False, False], [True, True, True]]


def test_a_change_of_values_alone_changes_contributions_and_no_weights(bert, minilm):
    model = copy.deepcopy(bert.subject.model)
    with torch.no_grad():
        model.encoder.layer[1].attention.self.value.weight[16:].normal_()
    result = compared(bert, nl.load(model, minilm.subject.tokenizer))["self"]
    assert (result.divergence["weights"] == 0).all()
    assert (result.divergence["norms"] > 1e-4).tolist() == [[False] * 3, [False, False, True]]


def test_cosine_and_divergence_of_a_run_are_those_of_loops(bert, minilm):
    other = nl.load(small_bert(seed=1), minilm.subject.tokenizer)
    result = compared(bert, other)["self"]
    for measure in MEASURES:
        cosine_of, divergence_of = [], []
        for text in TEXTS:
            pair = []
            for lens in (bert, other):
                blocks = lens.trace(text).self_attention
                maps = np.stack([(b.weights if measure == "weights" else b.weighted_norms)[0].numpy() for b in blocks])
                pair.append(maps.astype(float) / maps.sum(-1, keepdims=True))
            one, two = pair
            cells = list(np.ndindex(2, 3))
            cosine_of.append([1 - cosine(one[c].ravel(), two[c].ravel()) for c in cells])
            divergence_of.append(
                [np.mean([jensenshannon(a, b) ** 2 for a, b in zip(one[c], two[c], strict=True)]) for c in cells]
            )
        np.testing.assert_allclose(result.cosine[measure].ravel(), np.mean(cosine_of, axis=0), atol=1e-6)
        np.testing.assert_allclose(result.divergence[measure].ravel(), np.mean(divergence_of, axis=0), atol=2e-6)


def test_maps_without_a_common_key_have_cosine_0_and_divergence_log_2():
    one, two = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4)
    one[..., 0], two[..., 3] = 1, 1
    assert cosines(one, two).tolist() == [[0.0]]
    np.testing.assert_allclose(divergences(one, two), np.log(2), rtol=1e-6)
    assert np.isnan(cosines(one, torch.zeros_like(one))).all()
    assert np.isnan(divergences(one, torch.zeros_like(one))).all()


def test_padding_changes_nothing(bert, minilm):
    other = nl.load(small_bert(seed=1), minilm.subject.tokenizer)
    together, alone = compared(bert, other)["self"], compared(bert, other, batch_tokens=1)["self"]
    for measure in MEASURES:
        np.testing.assert_allclose(together.cosine[measure], alone.cosine[measure], atol=1e-6)
        np.testing.assert_allclose(together.divergence[measure], alone.divergence[measure], atol=2e-6)


def test_layers_and_heads_are_compared_where_both_models_have_them_and_inputs_are_those_of_each(bert, minilm):
    """DistilBERT takes no token types and has one layer of two heads here."""
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=30522, dim=24, n_layers=1, n_heads=2, hidden_dim=16)
    other = nl.load(DistilBertModel(config).eval(), minilm.subject.tokenizer)
    found = study(bert, TEXTS, studies=(ChangesStudy(other=other),))
    result = found["changes"]["self"]
    assert result.layers == (0,)
    assert result.cosine["weights"].shape == (1, 2)
    notes = found.document().chapters[0].articles[0].section.notes
    assert notes == [f"Layer 1 of {bert.subject.name} could not be compared."]


def test_two_translation_models_are_compared_on_given_targets_only(translator, texts):
    found = compared(translator, translator, texts)
    assert set(found) == {"encoder", "decoder", "cross"}
    assert all((result.divergence["norms"] == 0).all() for result in found.values())
    with pytest.raises(StudyError, match="would write different targets"):
        compared(translator, translator, [text for text, _ in texts])


def test_a_model_that_reads_other_tokens_is_refused(bert, minilm):
    other = copy.deepcopy(minilm.subject.tokenizer)
    other.backend_tokenizer.normalizer = NFC()  # capital letters stay, and are unknown
    with pytest.raises(StudyError, match="do not read the same tokens") as refused:
        compared(bert, nl.load(small_bert(), other))
    assert "another tokenizer" in str(refused.value)


def test_models_of_one_side_and_of_two_are_not_compared(bert, translator):
    with pytest.raises(StudyError, match="has one side"):
        compared(bert, translator)


def test_the_second_model_must_be_named(minilm, capsys):
    with pytest.raises(StudyError, match="The second model is missing"):
        study(minilm, TEXTS, studies=("changes",))
    assert main(["study", "changes"]) != 0
    assert "--set other=" in capsys.readouterr().err


def test_a_run_that_was_interrupted_is_continued_to_the_same_numbers(bert, minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    options = {"studies": (ChangesStudy(other=nl.load(small_bert(seed=1), minilm.subject.tokenizer)),)}
    whole = study(bert, TEXTS, **options)

    def stop(items, total):
        stop.done = getattr(stop, "done", 0) + items
        if stop.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(bert, TEXTS, **options, folder=tmp_path, progress=stop)
    again = study(bert, TEXTS, **options, folder=tmp_path, resume=True)
    assert again.to_json() == whole.to_json()
    another = ChangesStudy(other=nl.load(small_bert(seed=2), minilm.subject.tokenizer))
    with pytest.raises(StudyError, match="studies: changes"):
        study(bert, TEXTS, studies=(another,), folder=tmp_path, resume=True)


def test_a_folder_is_a_second_model_in_the_precision_of_the_first(minilm, tmp_path, capsys):
    model = small_bert(seed=3)
    for name, kept in (("one", model), ("half", copy.deepcopy(model).half())):
        kept.save_pretrained(tmp_path / name)
        minilm.subject.tokenizer.save_pretrained(tmp_path / name)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    arguments = ["study", "changes", "--corpus", str(tmp_path / "texts.txt"), "--model", str(tmp_path / "one")]
    assert main([*arguments, "--set", f"other={tmp_path / 'half'}"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Kovaleva" not in said  # of two layers, the last two are all
    assert "mean cosine of 1.00 by attention weights" in said
    assert main([*arguments, "--set", "other=nowhere-to-be-found"]) != 0


def test_the_report_says_which_layers_changed_most(minilm):
    model = small_bert(layers=4)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for layer in (2, 3):
            other.encoder.layer[layer].attention.self.query.weight.normal_()
    before, after = (nl.load(one, minilm.subject.tokenizer) for one in (model, other))
    said = study(before, TEXTS, studies=(ChangesStudy(other=after),)).document().chapters[0].articles[0].section
    assert "which agrees" in said.sentences[1]
    assert "does not" not in said.sentences[1]
    said = study(before, TEXTS, studies=(ChangesStudy(other=before),)).document().chapters[0].articles[0].section
    assert "does not agree" in said.sentences[1]


def test_a_decoder_is_compared_with_a_decoder(causal, minilm):
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=30522, n_positions=64, n_embd=24, n_layer=2, n_head=3, bos_token_id=101, eos_token_id=102
    )
    result = compared(causal, nl.load(GPT2LMHeadModel(config).eval(), minilm.subject.tokenizer))["self"]
    assert (result.divergence["weights"] >= 0).all()
    assert (result.divergence["weights"] < np.log(2)).all()
