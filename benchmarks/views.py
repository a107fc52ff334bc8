"""How large a saved view is, and how fast it answers: in Chromium, from a file, beside bertviz if it is installed.

    python benchmarks/views.py [--text FILE] [--chromium PATH]

The numbers are real attention of the bundled MiniLM (6 layers of 12 heads). For more layers and heads than it has,
traces of different stretches of the text are stacked, and the layers of 32 heads are made of the heads of several.
The first picture is counted from the start of loading to the end of drawing, a switch from the change of a control to
the end of drawing; the median of several, in one run.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import normlens as nl
from normlens import views
from normlens.corpora import default_corpus

SETTINGS = (  # layers, heads, tokens, megabytes allowed, seconds to the first picture
    (12, 12, 128, 3, 1.0),
    (12, 12, 512, 40, 2.0),
    (32, 32, 256, 60, None),
)
QUIET = "no-sandbox disable-gpu disable-background-networking disable-component-update disable-sync no-first-run"
SWITCH = """([name, value]) => new Promise((done) => {
  const root = document.getElementById("view");
  const input = document.querySelector(`input[name="${name}"][value="${value}"]`);
  const start = performance.now();
  const watch = new MutationObserver(() => {
    if (root.getAttribute("aria-busy") === "false") { watch.disconnect(); done(performance.now() - start); }
  });
  watch.observe(root, { attributes: true, attributeFilter: ["aria-busy"] });
  input.click();
})"""
READY = """() => new Promise((done) => {
  const root = document.getElementById("view");
  const told = () => root.dataset.ready && done(performance.now());
  new MutationObserver(told).observe(root, { attributes: true });
  told();
})"""


def stacked(lens: nl.Lens, ids: list[int], layers: int, heads: int, tokens: int) -> views.Figure:
    """A figure of so many layers and heads, made of real attention."""
    blocks, start = [], 0
    while len(blocks) < -(-layers * heads // 12):
        window = [ids[0], *ids[1 + start : tokens - 1 + start], ids[-1]]
        blocks += lens.trace(window).figure().panels
        start += 37
    weights, norms = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("weights", "transformed_norms")
    )
    panels = []
    for layer in range(layers):
        part = slice(layer * heads, (layer + 1) * heads)
        summed = blocks[layer % len(blocks)].summed_norms
        panels.append(views.attention(layer, "self", 0, 0, weights[part], norms[part], summed, 1e-7))
    side = lens.trace(ids[:tokens]).figure().sides[0]
    return views.Figure("a stack of real attention", str(lens.signature), (side,), tuple(panels))


def measured(browser, path: Path) -> dict[str, float]:
    """Seconds to the first picture, milliseconds of each kind of switch."""
    first = []
    for _ in range(3):
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri(), wait_until="commit")
        first.append(tab.evaluate(READY) / 1000)
        if len(first) < 3:
            tab.close()
    took = {"first": median(first)}
    tab.evaluate(SWITCH, ["layers", 3])
    took["head"] = median(tab.evaluate(SWITCH, ["heads", head]) for head in (1, 5, 7, 2, "all"))
    took["layer"] = median(
        tab.evaluate(SWITCH, ["layers", layer]) for layer in (0, 1, 2, 4, 5)
    )  # unpacked for the first time
    took["measure"] = median(
        tab.evaluate(SWITCH, ["measures", name]) for name in ("transformed_norms", "weighted_norms") * 2
    )
    for name in ("transformed_norms", "weighted_norms"):
        if tab.locator(f'input[name="measures"][value="{name}"]').is_checked():
            tab.evaluate(SWITCH, ["measures", name])
    took["lines"] = tab.evaluate(SWITCH, ["view", "lines"])
    took["bars"] = tab.evaluate(SWITCH, ["view", "bars"])
    took["all heads, first"] = tab.evaluate(SWITCH, ["view", "grid"])
    took["all heads, measure"] = tab.evaluate(SWITCH, ["measures", "summed_norms"])
    tab.close()
    return took


def bertviz_size(figure: views.Figure) -> str:
    """Megabytes of bertviz's head view of the same weights."""
    try:
        import torch
        from bertviz import head_view
    except ImportError:
        return "bertviz is not installed"
    attention = [torch.from_numpy(panel.weights)[None] for panel in figure.panels]
    page = head_view(attention, list(figure.sides[0].tokens), html_action="return")
    return f"bertviz {len(page.data.encode()) / 1e6:.0f} MB"


def main() -> int:
    """Print one block of lines per setting; 1 if a bound is broken."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="a text of some 2,000 words; without it, the bundled one")
    parser.add_argument(
        "--chromium", default=shutil.which("chromium"), help="default: chromium on the path, or playwright's own"
    )
    options = parser.parse_args()
    lens = nl.load()
    text = (
        options.text.read_text() if options.text else " ".join(text for item in default_corpus() for text in item.texts)
    )
    ids = lens.subject.tokenizer(text, truncation=False, verbose=False)["input_ids"]
    broken = 0
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=[f"--{flag}" for flag in QUIET.split()]
        )
        print(
            f"Chromium {browser.version}, normlens {nl.__version__}, {lens.subject.name} on {len(ids)} tokens of text"
        )
        for layers, heads, tokens, allowed, soon in SETTINGS:
            figure = stacked(lens, ids, layers, heads, tokens)
            start, path = time.perf_counter(), Path(folder) / f"{layers}x{heads}x{tokens}.html"
            figure.save(path)
            size, saving = path.stat().st_size / 1e6, time.perf_counter() - start
            took = measured(browser, path)
            limits = f"at most {allowed} MB" + (f", {soon:.0f} s" if soon else "")
            print(f"{layers} x {heads} heads, {tokens} tokens ({limits})")
            print(f"  {size:.1f} MB, written in {saving:.1f} s; {bertviz_size(figure)}")
            print(f"  first picture {took.pop('first'):.2f} s")
            print("  switches in ms: " + ", ".join(f"{name} {value:.0f}" for name, value in took.items()))
            broken += size > allowed
        browser.close()
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
