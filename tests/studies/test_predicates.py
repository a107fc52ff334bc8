"""Predicates over pairs of tokens: any offset, functions of the user's own, and what uniform attention would have."""

import json
import sys

import numpy as np
import pytest
import torch
from test_targets import TEXTS, sentence_numbers, takes

import normlens as nl
from normlens.cli.main import main
from normlens.studies import Predicate, StudyError, TargetsStudy, study
from normlens.studies.fingerprint import fingerprint
from normlens.studies.predicates import PREDICATES

pytestmark = pytest.mark.usefixtures("as_users_run_it")


def same_letter(query, key):
    return query.text[:1] == key.text[:1]


def found(lens, texts, **arguments):
    return study(lens, list(texts), studies=(TargetsStudy(**arguments),))["targets"]["self"]


def shares_slowly(lens, texts, meant):
    """Mean over texts of the mean over queries with such a key of the shares there, and the same of uniform maps."""
    shares, uniform = [], []
    for text in texts:
        trace = lens.trace(text)
        maps = np.stack([block.weights[0].double().numpy() for block in trace.self_attention])
        visible = np.any(maps > 0, axis=(0, 1))
        rows, even = [], []
        for i in range(maps.shape[2]):
            keys = [j for j in range(maps.shape[3]) if visible[i, j] and meant(trace, i, j)]
            if keys:
                rows.append(maps[:, :, i, keys].sum(-1))
                even.append(len(keys) / visible[i].sum())
        if rows:
            shares.append(np.mean(rows, axis=0))
            uniform.append(np.mean(even))
    return np.mean(shares, axis=0), np.mean(uniform)


@pytest.mark.parametrize("model", ["minilm", "causal"])
@pytest.mark.parametrize("step", [-2, 3])
def test_an_offset_is_the_share_of_the_key_so_many_tokens_away(model, step, request):
    lens = request.getfixturevalue(model)
    result = found(lens, TEXTS, offsets=(-2, 3))
    if model == "causal" and step > 0:  # no query sees a later key
        assert np.isnan(result.shares["offset_3", "weights"]).all()
        return
    shares, uniform = shares_slowly(lens, TEXTS, lambda trace, i, j: j - i == step)
    np.testing.assert_allclose(result.shares[f"offset_{step}", "weights"], shares, atol=2e-6)
    np.testing.assert_allclose(result.expected[f"offset_{step}"], uniform, atol=1e-6)


@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_a_function_of_two_tokens_is_a_predicate_like_any_other(model, request):
    lens = request.getfixturevalue(model)
    result = found(lens, TEXTS, own={"same_letter": same_letter})

    def meant(trace, i, j):
        return trace.tokens[0][i].removeprefix("##")[:1] == trace.tokens[0][j].removeprefix("##")[:1]

    shares, uniform = shares_slowly(lens, TEXTS, meant)
    np.testing.assert_allclose(result.shares["same_letter", "weights"], shares, atol=2e-6)
    np.testing.assert_allclose(result.expected["same_letter"], uniform, atol=1e-6)
    np.testing.assert_allclose(result.lift("same_letter", "weights"), shares / uniform, rtol=1e-5)


@pytest.mark.parametrize("target", list(PREDICATES))
def test_the_expected_share_is_that_of_uniform_attention(minilm, target):
    def meant(trace, i, j):
        tokens, special = trace.tokens[0], trace.special[0]
        return takes(target, tokens, trace.sides[0].ids, special, i, j, sentence_numbers(tokens, special))

    _, uniform = shares_slowly(minilm, TEXTS, meant)
    np.testing.assert_allclose(found(minilm, TEXTS).expected[target], uniform, atol=1e-6)


def test_ours_can_be_said_as_functions_of_two_tokens(minilm):
    own = {
        "before": lambda query, key: key.position == query.position - 1,
        "marks": lambda query, key: key.special,
        "copies": lambda q, k: q.id == k.id and q.position != k.position and not q.special,
        "within": lambda query, key: query.sentence == key.sentence,
    }
    result = found(minilm, TEXTS, own=own)
    for name, ours in zip(own, ("previous", "special", "duplicate", "same_sentence"), strict=True):
        for measure in ("weights", "norms"):
            np.testing.assert_array_equal(result.shares[name, measure], result.shares[ours, measure])


def test_a_word_is_the_same_for_all_its_pieces(minilm):
    seen = []
    found(minilm, ["unlikeliest tale"], own={"word": lambda q, k: seen.append(k) or True})
    keys = {token.position: token for token in seen}
    assert keys[0].word is None
    assert len({token.word for token in keys.values() if not token.special}) == 2
    assert len(keys) > 4


def test_a_predicate_of_a_whole_block_gives_what_the_function_of_pairs_gives(minilm):
    whole = Predicate("even", "tokens at even positions", lambda seen: torch.arange(seen.weights.shape[3]) % 2 == 0)
    result = found(minilm, TEXTS, own={"even": whole, "even_too": lambda query, key: key.position % 2 == 0})
    np.testing.assert_array_equal(result.shares["even", "norms"], result.shares["even_too", "norms"])
    assert result.readings["even"] == "tokens at even positions"


def test_a_function_is_called_once_for_every_pair_and_not_for_every_layer(minilm):
    calls = []
    found(minilm, ["Rain fell.", "No."], own={"counted": lambda query, key: bool(calls.append(1)) or True})
    lengths = [len(minilm.trace(text).tokens[0]) for text in ("Rain fell.", "No.")]
    assert len(calls) == sum(length**2 for length in lengths)


def test_a_function_may_compare_source_and_target(translator, texts):
    own = {"same_id": lambda query, key: query.id == key.id}
    results = study(translator, texts[:2], studies=(TargetsStudy(own=own, offsets=(2,)),))["targets"]
    assert "same_id" in results["cross"].targets
    assert "offset_2" not in results["cross"].targets
    assert "offset_2" in results["encoder"].targets


def test_lift_is_in_the_tables_and_the_columns_of_heads_stay_as_they_are(minilm):
    findings = study(minilm, list(TEXTS), studies=(TargetsStudy(own={"same_letter": same_letter}),))
    tables = findings.document().tables()
    row = next(row for row in tables["targets_expected_self"].rows if row["target"] == "previous")
    result = findings["targets"]["self"]
    assert row["lift_weights"] == pytest.approx(result.lift("previous", "weights").mean())
    first = tables["targets_self"].rows[0]
    assert first["previous_weights"] == pytest.approx(result.shares["previous", "weights"][0, 0])
    assert "same_letter_norms" in first
    assert tables["targets_lift_self"].rows[0]["same_letter_norms"] == pytest.approx(
        result.lift("same_letter", "norms")[0, 0]
    )


def failing(query, key):
    raise ZeroDivisionError("nothing to divide")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"own": {"previous": same_letter}}, "cannot be called 'previous'"),
        ({"own": {"two words": same_letter}}, "cannot be called 'two words'"),
        (
            {"own": {"entropy": same_letter}},
            "cannot be called 'entropy'.\n  Usual cause: every head has a column entropy",
        ),
        ({"own": {"distance": same_letter}}, "cannot be called 'distance'"),
        ({"own": {"x": 5}}, "'x' is no function"),
        ({"own": [same_letter]}, "own must map names to functions"),
        ({"offsets": ("a",)}, "offsets must be whole numbers"),
        ({"offsets": (2, 2)}, "given twice"),
    ],
)
def test_what_is_no_predicate_is_refused(arguments, told):
    with pytest.raises(StudyError, match=told):
        TargetsStudy(**arguments)


def test_a_function_that_fails_is_said_with_its_name_and_the_pair(minilm):
    with pytest.raises(StudyError, match="The predicate 'broken' failed") as refused:
        found(minilm, ["Rain fell."], own={"broken": failing})
    assert "ZeroDivisionError: nothing to divide, for query '[CLS]' (0) and key '[CLS]' (0)" in str(refused.value)
    wide = Predicate("wide", "too wide", lambda seen: torch.ones(1, 1, 999, dtype=torch.bool))
    with pytest.raises(StudyError, match="The predicate 'wide' failed"):
        found(minilm, ["Rain fell."], own={"wide": wide})


def offset_by(step):
    return lambda query, key: key.position == query.position + step


def test_functions_of_one_name_and_source_differ_by_the_values_they_use():
    assert fingerprint(same_letter) == fingerprint(same_letter)
    assert fingerprint(offset_by(1)) == fingerprint(offset_by(1))
    assert fingerprint(offset_by(1)) != fingerprint(offset_by(2))
    here, there = (lambda q, k: q.id == k.id), (lambda q, k: q.id != k.id)  # fmt: skip
    assert fingerprint(here) != fingerprint(there)


def test_a_function_without_source_is_never_the_same():
    made = {}
    exec("def made(query, key): return True", made)
    assert fingerprint(made["made"]) != fingerprint(made["made"])


def test_a_run_is_resumed_with_the_same_function_only(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)

    def run(own, **options):
        return study(minilm, list(TEXTS), studies=(TargetsStudy(own=own, offsets=(-2,)),), **options)["targets"]["self"]

    def interrupted(items, total, done=[0]):  # noqa: B006
        done[0] += items
        if done[0] >= 2:
            raise KeyboardInterrupt

    whole = run({"near": offset_by(1)})
    with pytest.raises(KeyboardInterrupt):
        run({"near": offset_by(1)}, folder=tmp_path, progress=interrupted)
    with pytest.raises(StudyError, match="was another one"):
        run({"near": offset_by(2)}, folder=tmp_path, resume=True)
    again = run({"near": offset_by(1)}, folder=tmp_path, resume=True)
    for key, values in whole.shares.items():
        np.testing.assert_array_equal(values, again.shares[key])
    for key, values in whole.expected.items():
        np.testing.assert_array_equal(values, again.expected[key])


def test_the_command_line_takes_functions_of_a_file(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("def same_letter(query, key):\n    return query.text[:1] == key.text[:1]\n")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    command = ["study", "targets", "--corpus", str(tmp_path / "texts.txt"), "--json", "--set", "offsets=-2,2"]
    try:
        assert main([*command, "--set", f"own={tmp_path / 'mine.py'}:same_letter"]) == 0
        printed = json.loads(capsys.readouterr().out)
        expected = found(nl.load(), TEXTS, own={"same_letter": same_letter})
        row = printed["tables"]["targets_self"][0]
        assert row["same_letter_weights"] == pytest.approx(expected.shares["same_letter", "weights"][0, 0], abs=1e-6)
        assert {"offset_-2_weights", "offset_2_norms"} <= row.keys()
        assert "same_letter of mine.same_letter@" in printed["signature"]
        for wrong, told in (
            (f"{tmp_path / 'mine.py'}:other", "There is no function 'other'"),
            ("same_letter", "its file"),
        ):
            assert main([*command, "--set", f"own={wrong}"]) == 1
            said = capsys.readouterr().err
            assert told in said
            assert "Traceback" not in said
    finally:
        sys.modules.pop("mine", None)
