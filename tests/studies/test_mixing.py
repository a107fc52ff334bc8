"""The mixing ratio: against plain loops over single texts, against layers made by hand, with and without masks."""

import blocks
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from normlens.corpora import corpus, frequency
from normlens.studies import MixingStudy, StudyError, study
from normlens.studies.mixing_ratios import FORMS, masked_corpus, of_block

NAMES = ("[CLS]", "[SEP]", "comma & period", "other")
FOUR = {"[CLS]": ["[CLS]"], "[SEP]": ["[SEP]"], "comma & period": [",", "."]}
QUANTITIES = [form.quantity for form in FORMS.values() if form.quantity]


def category_of(token):
    return next((name for name, tokens in FOUR.items() if token in tokens), "other")


def ratios_of(block):
    """Every form of every token of a text, by loops over queries, heads and keys."""
    heads, tokens, _ = block.weights.shape[1:]
    found = {}
    for name, form in FORMS.items():
        if form.quantity:
            if form.quantity in block.kept:
                found[name] = block[form.quantity][0].double().tolist()
            continue
        found[name] = [
            form.part
            * sum(float(block.weights[0, h, i, j]) for h in range(heads) for j in range(tokens) if j != i)
            / heads
            for i in range(tokens)
        ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", ["minilm", "causal", "translator"])
def test_every_number_is_that_of_loops_over_single_texts(model, request, texts):
    lens = request.getfixturevalue(model)
    ranks = frequency.from_vocabulary(lens.subject.tokenizer)
    found = study(lens, texts, studies=("mixing",), categories=FOUR, ranks="vocabulary", batch_tokens=60)["mixing"]
    assert found.keys() == ({"encoder", "decoder"} if model == "translator" else {"self"})
    for kind, result in found.items():
        pooled, cells, points = {}, {}, {}
        for item in texts:
            given = {"fields": ("weights", *QUANTITIES)}
            if lens.subject.is_seq2seq:
                trace = lens.trace(source=item[0], target=item[1], **given)
            else:
                trace = lens.trace(item, **given)
            side = (trace.targets if kind == "decoder" else trace.sides)[0]
            whole = {}
            for block in (b for b in trace.blocks if b.kind == kind):
                for name, ratios in ratios_of(block).items():
                    pooled.setdefault(name, []).extend(ratios)
                    whole.setdefault(name, []).append(ratios)
                    kinds = [category_of(token) for token in side.tokens]
                    for category in (*NAMES, None):
                        mine = [r for r, k in zip(ratios, kinds, strict=True) if category in (k, None)]
                        if mine:
                            cells.setdefault((name, category, block.layer), []).append(np.mean(mine))
            for name, layers in whole.items():
                for number, special, ratio in zip(side.ids, side.special, np.mean(layers, axis=0), strict=True):
                    if not ranks.excluded[number]:
                        points.setdefault(name, []).append((ranks.ranks[number], special, ratio))
        assert set(result.forms) == set(pooled)
        assert set(result.missing) == set(FORMS) - set(pooled)
        for name, one in result.forms.items():
            values = pooled[name]
            close = {"rtol": 1e-5, "atol": 1e-6}
            np.testing.assert_allclose(
                (one.mean, one.highest, one.lowest), (np.mean(values), max(values), min(values)), **close
            )
            for place, layer in enumerate(result.layers):
                np.testing.assert_allclose(one.by_layer[place], np.mean(cells[name, None, layer]), **close)
                for index, category in enumerate(NAMES):
                    expected = np.mean(cells[name, category, layer]) if (name, category, layer) in cells else np.nan
                    np.testing.assert_allclose(one.by_category[place, index], expected, **close)
            rank, special, ratio = (np.array(column) for column in zip(*points[name], strict=True))
            plain = ~special.astype(bool)
            np.testing.assert_allclose(one.rank, spearmanr(rank, ratio).statistic, atol=2e-3)
            np.testing.assert_allclose(one.plain_rank, spearmanr(rank[plain], ratio[plain]).statistic, atol=2e-3)


def test_by_weights_it_is_what_other_keys_receive():
    weights = torch.tensor([[[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]] * 3]])
    seen = blocks.seen(weights, torch.ones(1, 2, 3, 1), torch.ones(2, 1, 1), [3])
    found = of_block(seen)
    np.testing.assert_allclose(found["attn_w"][0], [0.25, 0.6, 0.5])
    np.testing.assert_allclose(found["attnres_w"][0], [0.125, 0.3, 0.25])
    assert set(found) == {"attn_w", "attnres_w"}  # the block kept no other


def test_a_form_that_the_model_lacks_is_named_with_the_reason(causal, texts):
    found = study(causal, texts[:2], studies=("mixing",))
    assert found["mixing"]["self"].missing == {"attnresln_n": "no norm follows the sum with the residual in this block"}
    assert found["mixing"]["self"].kept.form.name == "attnres_n"
    section = found.document().chapters[0].articles[0].section
    assert section.notes[0].startswith("AttnResLn-N does not exist here: no norm follows")
    assert section.sentences[0].startswith("AttnRes-N, the mixing ratio with the residual, is ")


def test_a_token_alone_mixes_nothing(causal):
    result = study(causal, ["one two three"], studies=("mixing",))["mixing"]["self"]
    assert {name: one.lowest for name, one in result.forms.items()} == dict.fromkeys(result.forms, 0.0)


def test_a_share_of_the_tokens_is_masked_and_special_ones_never(minilm, texts):
    items = corpus(texts)
    masked = masked_corpus(items, minilm, 128, 0.12)
    first, again = ([item.tokens for item in masked] for _ in range(2))
    assert first == again
    for tokens, item in zip(first, texts, strict=True):
        plain = minilm.trace(item, fields=("weights",)).tokens[0]
        free = [token for token in plain if token not in ("[CLS]", "[SEP]")]
        assert tokens.count("[MASK]") == max(1, int(0.12 * len(free)))
        assert all(a in (b, "[MASK]") for a, b in zip(tokens, plain, strict=True))
        assert [t for t in tokens if t in ("[CLS]", "[SEP]")] == [t for t in plain if t in ("[CLS]", "[SEP]")]


def test_a_masked_study_runs_alone_and_says_so(minilm, texts):
    result = study(minilm, texts, studies=(MixingStudy(masked=0.12),), categories={"[MASK]": ["[MASK]"]})
    assert "12 % masked" in str(result.run.signature)
    assert np.isfinite(result["mixing"]["self"].forms["attn_n"].by_category[:, 0]).all()
    with pytest.raises(StudyError, match="changes the texts, so it runs alone"):
        study(minilm, texts, studies=("categories", MixingStudy(masked=0.12)))
    with pytest.raises(StudyError, match="masked must be"):
        MixingStudy(masked=1.0)


def test_a_translation_model_is_not_masked(translator, texts):
    with pytest.raises(StudyError, match="cannot be masked"):
        list(masked_corpus(corpus(texts), translator, 128, 0.12))
