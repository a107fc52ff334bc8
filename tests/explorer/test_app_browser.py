"""The explorer as a person uses it, in a real browser."""

import pytest

import normlens as nl

READY = "#view canvas"


@pytest.fixture
def tab(browser, explorer):
    """Opens the explorer; at the end no error was logged and no other computer asked."""
    complaints, requests, contexts = [], [], []
    origin = f"http://{explorer.host}"

    def open_page(hash: str = "", expected: tuple[str, ...] = (), **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type != "debug" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{origin}/{hash}")
        page.locator("#first option").nth(2).wait_for(state="attached")
        page.expected = expected
        return page

    yield open_page
    expected = [text for context in contexts for page in context.pages for text in getattr(page, "expected", ())]
    for context in contexts:
        context.close()
    assert [text for text in complaints if not any(part in text for part in expected)] == []
    assert [url for url in requests if not url.startswith((origin, "data:", "blob:"))] == []


def show(page, text: str, **fields) -> None:
    page.locator("#first [name=text]").fill(text)
    for name, value in fields.items():
        field = page.locator(f"#first [name={name}]")
        field.select_option(value) if name == "model" else field.fill(value)
    page.locator("#show").click()


def shown(page, title: str) -> None:
    page.locator("#status", has_text=f"Shown: {title}").wait_for()
    page.locator(READY).first.wait_for()
    assert page.locator("#problem").is_hidden()


def test_type_a_text_and_see_it(tab):
    page = tab()
    show(page, "the cat sat on the mat")
    shown(page, "the cat sat on the mat")
    assert page.locator("#view figure").count() == 2
    assert page.locator("#page").get_attribute("href").endswith("/view.html")
    assert page.locator("#trace").is_visible()


def test_everything_by_keyboard(tab):
    page = tab()
    page.locator("#first [name=text]").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("the dog ran")
    page.keyboard.press("Control+Enter")
    shown(page, "the dog ran")
    page.locator("#view .stage").focus()
    page.keyboard.press("ArrowDown")
    page.locator("#view figcaption", has_text="L1").first.wait_for()


def test_a_translation_asks_for_source_and_target(tab):
    page = tab()
    page.locator("#first [name=model]").select_option("translator")
    assert "Source" in page.locator("#first .text").inner_text()
    assert "the model writes it" in page.locator("#first .other").inner_text()
    show(page, "the cat sat", other="a dog ran")
    shown(page, "the cat sat")


def test_cancelling_a_long_run_leaves_the_page_ready(tab):
    page = tab()
    show(page, "the cat sat on the mat and slept quietly " * 31, model="slow")
    page.locator("#status", has_text="block").wait_for()
    page.locator("#cancel").click()
    page.locator("#status", has_text="Cancelled").wait_for()
    assert page.locator("#cancel").is_hidden()
    show(page, "a cat", model="reader")
    shown(page, "a cat")


def test_cancelling_while_a_file_is_being_sent(tab, tmp_path):
    path = tmp_path / "t.safetensors"
    path.write_bytes(b"x")
    page = tab(expected=("ERR_",))
    page.route("**/api/open", lambda _: None)  # it never arrives
    page.locator("#file").set_input_files(path)
    page.locator("#cancel").click()
    page.locator("#status", has_text="Cancelled").wait_for()
    assert page.locator("#show").is_enabled()


def test_skipping_to_the_view_leaves_the_link_alone(tab):
    page = tab()
    show(page, "the cat sat")
    shown(page, "the cat sat")
    link = page.url
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    assert page.url == link


def test_a_refusal_is_a_sentence_with_what_to_do(tab):
    page = tab()
    show(page, "cat " * 400)
    problem = page.locator("#problem")
    problem.wait_for()
    assert "401 tokens" in problem.inner_text()
    assert "shorten" in problem.inner_text().lower()
    assert problem.get_attribute("role") == "alert"


def test_a_refused_request_is_shown_too(tab):
    page = tab(expected=("422",))
    show(page, "a" * 30_000)
    page.locator("#problem", has_text="30,000 characters").wait_for()


def test_the_link_restores_text_model_and_look(tab):
    page = tab()
    show(page, "the old cat slept", model="reader")
    shown(page, "the old cat slept")
    page.locator("#view .stage").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.locator("#view figcaption", has_text="α L1H0").wait_for()
    link = page.evaluate("location.hash")
    assert "run=" in link
    assert "look=" in page.locator("#page").get_attribute("href"), "the page to download opens with it as well"
    assert "cat" not in page.url
    again = tab(link)
    shown(again, "the old cat slept")
    assert again.locator("#first [name=text]").input_value() == "the old cat slept"
    again.locator("#view figcaption", has_text="α L1H0").wait_for()


def test_after_a_damaged_link_the_explorer_can_be_used(tab):
    page = tab("#run=%%%nonsense")
    page.locator("#problem", has_text="The link is damaged.").wait_for()
    show(page, "a cat")
    shown(page, "a cat")


def test_open_a_saved_trace_by_button_and_by_dropping_it(tab, folders, tmp_path):
    path = nl.load(folders["reader"]).trace("a dog ran under the tree").save(tmp_path / "t.safetensors")
    page = tab()
    page.locator("#file").set_input_files(path)
    shown(page, "a dog ran under the tree")
    assert page.locator("#copy").is_disabled()
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no trace at all")
    page.locator("#file").set_input_files(bad)
    page.locator("#problem", has_text="trace").wait_for()
    transfer = page.evaluate_handle(
        "bytes => { const all = new DataTransfer();"
        "all.items.add(new File([new Uint8Array(bytes)], 't.safetensors')); return all; }",
        list(path.read_bytes()),
    )
    page.dispatch_event("body", "drop", {"dataTransfer": transfer})
    shown(page, "a dog ran under the tree")


def test_compare_two_texts(tab):
    page = tab()
    page.locator("#compare summary").click()
    page.locator("#second [name=text]").fill("the dog sat")
    show(page, "the cat sat")
    page.locator("#status", has_text="Shown:").wait_for()
    page.locator("#view figure.signed").first.wait_for()
    assert page.locator("#trace").is_hidden()
    again = tab(page.evaluate("location.hash"))
    again.locator("#view figure.signed").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_narrow_and_wide_light_and_dark(tab, scheme, width):
    page = tab(color_scheme=scheme, viewport={"width": width, "height": 800})
    show(page, "the cat sat on the mat")
    shown(page, "the cat sat on the mat")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme


def test_every_study_of_a_report_is_a_tab(tab):
    page = tab()
    page.locator("#pages button", has_text="Own").click()
    report = page.frame_locator("#corpus iframe")
    report.get_by_role("heading", name="Is it the user's own?").wait_for()
    assert not report.get_by_role("heading", name="Is it first?").is_visible()
    assert not page.locator("#ask").is_visible()
    report.get_by_role("button", name="share").click()  # its tables are live
    assert report.locator("#own tbody th").all_inner_texts() == ["L0H1", "L0H2", "L0H0"]
    with page.expect_download() as download:
        report.locator("#own a", has_text="csv").click()
    assert download.value.suggested_filename == "own_self.csv"
    page.locator("#pages button", has_text="One text").click()
    assert page.locator("#ask").is_visible()


def choose_head(page, layer: int, head: int) -> None:
    page.locator(f"#view [data-name=layers] input[value='{layer}']").locator("..").click()
    page.locator(f"#view [data-name=heads] input[value='{head}']").locator("..").click()
    page.locator("#view figcaption", has_text=f"α L{layer}H{head}").wait_for()


def test_the_head_that_is_chosen_shows_its_profile(tab):
    page = tab()
    show(page, "the cat sat on the mat", model="reader")
    shown(page, "the cat sat on the mat")
    assert page.locator("#profile").is_hidden()
    choose_head(page, 1, 0)
    profile = page.locator("#profile")
    assert profile.locator("h2").inner_text() == "The profile of L1H0"
    assert profile.locator("p").first.inner_text() == "next token; diagonal by α, block by ‖αf(x)‖."
    assert profile.locator("h3").all_inner_texts() == ["targets", "own"]
    assert profile.locator("dt").all_inner_texts() == ["next α", "sharpness"]
    assert profile.locator("dd").all_inner_texts() == ["61 %", "<b>"]
    choose_head(page, 0, 1)
    assert "The report says nothing of this head." in profile.inner_text()


def test_a_model_without_a_profile_says_how_to_get_one(tab):
    page = tab()
    show(page, "the cat", model="translator", other="a dog")
    shown(page, "the cat")
    choose_head(page, 1, 0)
    said = page.locator("#profile").inner_text()
    assert "The report is one of somewhere/reader@" in said
    assert "normlens heads --corpus texts.txt --out heads, then normlens serve --corpus heads" in said


def test_the_link_with_the_token_opens_the_page_and_the_token_leaves_the_address(browser, start, folders):
    locked = start(folders["reader"], token="a-token-of-the-tests-0002")
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{locked.host}/")
    page.locator("#problem", has_text="token").wait_for()
    page.goto(locked.link)
    page.locator("#first option").wait_for(state="attached")
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""
    page.goto(f"http://{locked.host}/")
    page.locator("#first option").wait_for(state="attached")
    context.close()


def test_every_field_has_a_name_for_screen_readers(tab):
    page = tab()
    unnamed = page.evaluate(
        "[...document.querySelectorAll('#ask :is(select, textarea, button, input)')]"
        ".filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert page.locator("#status").get_attribute("aria-live") == "polite"


def test_the_view_of_the_run_before_is_marked_as_such_after_a_refusal(tab):
    page = tab(expected=("422",))
    show(page, "the cat sat")
    shown(page, "the cat sat")
    show(page, "word " * 3000)
    page.locator("#problem", has_text="tokens").wait_for()
    assert "before" in page.locator("#view").get_attribute("class")
    show(page, "a dog")
    shown(page, "a dog")
    assert "before" not in page.locator("#view").get_attribute("class")
