"""Highlighted text: what it says, draws and shows when it is pointed at."""

import json
import re

import numpy as np
import pytest

import normlens as nl
from normlens import views
from normlens.views import Highlight, Highlights, Token

NASTY = "</script><b>\u202e"


def text(*names, scores, steps=1, **more):
    tokens = tuple(Token(name, name, place, False, place > 0) for place, name in enumerate(names))
    asked = tuple(
        Highlight(names[len(row)] if steps > 1 else "good", "good", 2.0, np.array(row), 0.5, 1e-7) for row in scores
    )
    facts = {"title": "A method", "says": "A score.", "signed": True, "signature": "model:m"}
    return Highlights(tokens=tokens, given=more.pop("given", len(names)), steps=asked, **facts | more)


def test_the_sentences_name_the_strongest_tokens_of_each_side_and_the_sum():
    shown = text("not", "so", "bad", scores=[[1.25, -0.5, 0.75]])
    assert shown.told(shown.total) == [
        "good, logit 2: what the model predicts.",
        "For it: not +1.25, bad +0.75.",
        "Against it: so -0.5.",
        "The scores add up to +1.5; +0.5 belongs to no token; together they are the logit (relative error 1e-07).",
    ]


def test_what_is_another_than_predicted_says_both():
    one = Highlight("bad", "good", -1.0, np.zeros(2), 0.0, None)
    assert one.heading == "bad, logit -1; the model predicts good."
    assert one.sums == "The scores of this method do not add up to the logit."
    contrast = Highlight("good rather than bad", "good", 3.0, np.zeros(2), 0.0, None)
    assert contrast.heading.startswith("good rather than bad, difference of logits 3;")


def test_an_answer_is_the_sum_of_its_steps():
    shown = text("a", "b", "c", scores=[[1.0], [0.5, -2.0]], steps=2, given=1)
    assert shown.asked == {1: 0, 2: 1}
    assert shown.total.scores.tolist() == [1.5, -2.0]
    assert shown.total.heading == "b c: the logits of 2 tokens, which add up to 4."
    assert shown.total.unowned == 1.0


def test_the_terminal_has_a_bar_to_the_left_below_zero_and_to_the_right_above():
    plain = views.highlights_text(text("not", "so", scores=[[1.0, -0.5]]), color=False, width=60)
    assert "not           +1  " + 12 * " " + "│████████████" in plain
    assert "so          -0.5        ██████│" in plain
    assert "\x1b" not in plain
    painted = views.highlights_text(text("not", "so", scores=[[1.0, -0.5]]), color=True, width=60)
    assert re.search(r"\x1b\[48;5;124;38;5;15mnot\x1b\[0m \x1b\[48;5;\d+;38;5;16mso", painted)


def test_a_long_text_shows_its_strongest_tokens_in_order():
    scores = np.linspace(-1, 1, 100)
    plain = views.highlights_text(text(*(f"w{i}" for i in range(100)), scores=[scores]), color=False, width=60)
    assert "The 24 strongest of 100 tokens." in plain
    listed = re.findall(r"^w(\d+)", plain, re.MULTILINE)
    assert [int(number) for number in listed] == [*range(12), *range(88, 100)]


def test_a_page_holds_tokens_as_text_whatever_they_are(tmp_path):
    path = tmp_path / "page.html"
    views.save_highlights([text("a", NASTY, scores=[[1.0, -1.0]])], path)
    page = path.read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "<b>" not in page
    assert "\u202e" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data[0]["total"]["scores"] == [1.0, -1.0]


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_a_drawing_is_the_same_each_time(tmp_path, form):
    pytest.importorskip("matplotlib")
    shown = [text("a", "猫", "c", scores=[[1.0, -1.0, 0.0]]), text("a", "b", scores=[[1.0], [2.0]], steps=1)]
    files = [views.save_highlights(shown, tmp_path / f"{name}.{form}").read_bytes() for name in ("first", "second")]
    assert files[0] == files[1]
    assert len(files[0]) > 1000


def test_another_format_is_refused(classifier, tmp_path):
    with pytest.raises(nl.NormlensError, match=r"unsupported format \.jpg"):
        classifier.attribute("the cat").save(tmp_path / "x.jpg")


def test_pointing_at_a_token_of_an_answer_shows_what_it_is_due_to(opened, writer, tmp_path):
    found = writer.attribute("the big cat", answer="sat on the mat", by="gradient_x_input")
    found.save(tmp_path / "answer.html")
    page = opened(tmp_path / "answer.html")
    shares = (
        "() => [...document.querySelectorAll('.token')].map((one) => Number(one.style.getPropertyValue('--share')))"
    )
    total = page.evaluate(shares)
    assert len(total) == 7
    page.hover("button:has-text('on')")
    step = found.steps[1]
    scores = step.scores[0].abs()
    expected = [*(scores / scores.max()).tolist(), 0, 0, 0]
    np.testing.assert_allclose(page.evaluate(shares), expected, atol=1e-4)
    assert page.locator(".token.asked").all_text_contents() == ["on"]
    assert page.locator(".token.unseen").all_text_contents() == ["on", "the", "mat"]
    assert page.locator(".readout").text_content().startswith("on, logit")
    page.mouse.move(0, 0)
    np.testing.assert_allclose(page.evaluate(shares), total, atol=1e-4)
    page.click("button:has-text('mat')")
    page.mouse.move(0, 0)
    assert page.locator(".token.asked").all_text_contents() == ["mat"]
    page.hover("span:has-text('big')")
    assert page.locator(".readout").text_content().startswith("big: ")
    page.keyboard.press("Escape")
    np.testing.assert_allclose(page.evaluate(shares), total, atol=1e-4)


def test_without_scripts_the_page_shows_the_sum(browser, classifier, tmp_path):
    found = classifier.attribute("the big cat", "good", by="gradient_x_input")
    found.save(tmp_path / "page.html")
    tab = browser.new_context(offline=True, java_script_enabled=False).new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    assert tab.locator(".token").all_text_contents() == ["<s>", "the", "big", "cat", "</s>"]
    signs = ["against" in one.get_attribute("class") for one in tab.locator(".token").all()]
    assert signs == (found.scores[0] < 0).tolist()
    assert tab.locator("h1").text_content().startswith("good, logit")


def test_a_notebook_shows_the_page_and_the_text(classifier):
    html = classifier.attribute("the cat")._repr_html_()
    assert html.startswith("<iframe")
    assert "<pre" in html
