"""A tiny training learns, leaves a model that transformers loads, and says what it was."""

import json
import math
from dataclasses import replace

import pytest
import torch
from toy_text import TOY, begun

from normlens.nmt import TextError, TrainingError, train, translate
from normlens.nmt.batches import encoded
from normlens.nmt.model import POSITIONS, DeviceError, loss, tokenizer, untrained
from normlens.nmt.training import step

FILES = {
    "README.md", "config.json", "generation_config.json", "history.json", "model.safetensors", "recipe.json",
    "source.spm", "target.spm", "target_vocab.json", "tokenizer_config.json", "vocab.json",
}  # fmt: skip


def test_training_lowers_the_loss_on_pairs_it_never_saw(finished):
    _, told = finished
    losses = [update.loss for update in told["updates"]]
    assert len(losses) == 60
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
    looks = told["looks"]
    assert [look.update for look in looks] == [20, 40, 60]
    assert looks[-1].valid_loss < looks[0].valid_loss < math.log(60)  # better than knowing nothing
    assert all(0 <= look.bleu <= 100 for look in looks)


def test_every_target_subword_is_counted_once_an_epoch(finished, toy):
    folder, told = finished
    pairs = encoded(tokenizer(folder, source="de", target="en"), toy[:57])
    batches = len(pairs.epoch(tokens=TOY.tokens, seed=(0, 0)))
    assert sum(update.tokens for update in told["updates"][:batches]) == len(pairs.targets.ids)


def test_the_folder_holds_a_model_in_single_precision_and_no_rest(finished):
    from safetensors.torch import load_file

    folder, _ = finished
    assert {path.name for path in folder.iterdir()} == FILES
    weights = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert not [name for name in weights if "position" in name or "lm_head" in name]  # computed, and tied


def test_the_card_says_what_was_trained_and_how_good_it_is(finished):
    folder, told = finished
    text = (folder / "README.md").read_text(encoding="utf-8")
    best = max(reversed(told["looks"]), key=lambda look: look.bleu)
    for part in ("de to en", "pairs given in Python", "last 3 pairs", "| width | 16 |", "| updates | 60 |", "seed"):
        assert part in text
    assert f"{best.bleu:.2f} |" in text
    assert f"{best.valid_loss:.4f} |" in text
    assert [look["bleu"] for look in json.loads((folder / "history.json").read_text())] == [
        look.bleu for look in told["looks"]
    ]


def test_ids_are_those_of_the_saved_tokenizer_also_for_unknown_letters(finished):
    from normlens.nmt import load_translator

    folder, _ = finished
    _, tokens = load_translator(folder)
    texts = [("Der Hund, leise.", "The dog, quietly."), ("Ω漢字 der", "the €€ q"), ("a  b", "c\td")]
    pairs = encoded(tokens, texts)
    for at, (source, target) in enumerate(texts):
        rows = pairs.batch(torch.tensor([at]).numpy())
        assert rows[0].tolist() == [tokens(source).input_ids]
        assert rows[1].tolist() == [tokens(text_target=target).input_ids]


def test_text_in_chunks_gives_the_same_ids(finished, toy, monkeypatch):
    tokens = tokenizer(finished[0], source="de", target="en")
    whole = encoded(tokens, toy)
    monkeypatch.setattr("normlens.nmt.batches.CHUNK", 7)
    parts = encoded(tokens, iter(toy))
    assert len(parts) == len(toy)
    for side in ("sources", "targets"):
        one, other = getattr(whole, side), getattr(parts, side)
        assert (one.ids.tolist(), one.starts.tolist()) == (other.ids.tolist(), other.starts.tolist())


def test_long_pairs_are_left_out(finished):
    tokens = tokenizer(finished[0], source="de", target="en")
    texts = [("a b c", "a"), ("a", "a b c d"), ("a b", "a b"), ("hu" * POSITIONS, "a"), ("hu" * 40, "a")]
    assert len(encoded(tokens, texts, longest=3)) == 3
    assert len(encoded(tokens, texts)) == 4


def test_an_update_in_parts_is_the_update_at_once(finished, toy, monkeypatch):
    pairs = encoded(tokenizer(finished[0], source="de", target="en"), toy)
    source, target = pairs.batch(torch.arange(12).numpy())

    def after():
        model = untrained(replace(TOY, dropout=0.0), sources=60, targets=60, seed=0)
        lost = step(model, torch.optim.SGD(model.parameters(), lr=1.0), source, target, smoothing=0.1, update=1)
        return lost, model.state_dict()

    lost, weights = after()
    monkeypatch.setattr("normlens.nmt.training.AT_ONCE", 60)
    in_parts, others = after()
    assert in_parts == pytest.approx(lost, rel=1e-5)
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=1e-5, msg=name)


def test_padding_changes_no_loss(finished, toy):
    pairs = encoded(tokenizer(finished[0], source="de", target="en"), [*toy[:1], ("der Hund", "the dog")])
    model = untrained(TOY, sources=60, targets=60, seed=0).eval()
    with torch.no_grad():
        both = loss(model, *pairs.batch(torch.arange(2).numpy()), smoothing=0.0)
        apart = [
            (loss(model, *(one := pairs.batch(torch.tensor([n]).numpy())), smoothing=0.0), one[1].numel())
            for n in (0, 1)
        ]
    mean = sum(float(each) * count for each, count in apart) / sum(count for _, count in apart)
    assert float(both) == pytest.approx(mean, rel=1e-5)


def test_the_random_numbers_of_the_caller_are_left_alone(finished, toy, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(toy, begun(tmp_path / "m", finished[0]), recipe=replace(TOY, updates=1), resume=True)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", ["diverged", "too long", "seed", "limit", "device"])
def test_a_training_that_cannot_go_well_says_why(toy, finished, tmp_path, name):
    error, said, change, options = {
        "diverged": (TrainingError, "loss of update [23] is (nan|inf).*\n.*too high", {"rate": 1e30, "warmup": 1}, {}),
        "too long": (TextError, "longer than 2 words", {"longest": 2}, {}),
        "seed": (TrainingError, "(?s)seed must be from 0.*seed -1", {}, {"seed": -1}),
        "limit": (TrainingError, "(?s)valid_limit at least 1.*valid_limit 0", {}, {"valid_limit": 0}),
        "device": (DeviceError, "'nowhere' cannot be used", {}, {"device": "nowhere"}),
    }[name]
    with pytest.raises(error, match=said):
        train(toy, begun(tmp_path / "m", finished[0]), recipe=replace(TOY, **change), resume=True, **options)
    assert not (tmp_path / "m" / "model.safetensors").exists()


def test_a_trained_model_translates_in_order_and_closes_up_punctuation(finished, toy):
    from normlens.nmt import load_translator

    lines = [source for source, _ in toy[:5]] + ["", "  "] + [toy[5][0]]
    found = list(translate(*load_translator(finished[0]), lines, beams=2, batch=3))
    assert len(found) == 8
    assert found[5] == found[6] == ""
    assert all(text and " ," not in text and " ." not in text for text in found[:5] + found[7:])
