// The view: what is chosen, what follows from it, and who listens. One look, one render.

import { choices } from "./choices.js";
import { themeNow } from "./color.js";
import { action, element } from "./controls.js";
import { openFigure } from "./data.js";
import { exactNumbers, putExact } from "./exact.js";
import { asPng, asSvg, copy, download } from "./exporting.js";
import { key } from "./keys.js";
import { decodePictures } from "./picture.js";
import { groupOf, measuresOf, ofRole, panelsOf, shownMaps } from "./shown.js";
import { NO_SPOT, arrange, basis, draw, headline, scenesOf } from "./stage.js";
import { digits, footnotes, table } from "./telling.js";

// Shows a figure inside `root`; resolves when the first picture is drawn, to a view that is to be closed before its root
// is given to another. source: {chunk(k), exact?(panel, axis, at)}.
export async function mount(root, header, { chunk, exact, onLook = () => {} }) {
  const figure = openFigure(header, { chunk, exact }),
    view = { root, figure, look: { ...header.look }, spot: { ...NO_SPOT }, several: false };
  const parts = skeleton(root, figure);
  Object.assign(view, parts, { turn: 0 });
  view.change = (patch) => change(view, patch, onLook);
  view.point = (spot) => point(view, spot);
  view.pick = (spot) => pick(view, spot);
  paintTheme(root);
  await decodePictures(figure);
  complete(view);
  await render(view);
  listen(view);
  return view;
}

function skeleton(root, figure) {
  const parts = {
    finding: element("p", { class: "finding" }),
    form: element("form", { class: "controls", "aria-label": "What to show" }),
    readout: element("p", { class: "readout", role: "status" }),
    footer: element("footer"),
    stage: element("div", {
      class: "stage",
      tabindex: "0",
      role: "group",
      "aria-label":
        "The picture. Left and right change the head, up and down the layer, Shift with an arrow moves the cell, Enter pins its row, Escape lets go.",
    }),
    numbers: element("details", { class: "numbers" }, element("summary", {}, "The numbers as a table")),
  };
  parts.form.addEventListener("submit", (event) => event.preventDefault());
  root.classList.add("normlens");
  root.replaceChildren(
    element("h1", {}, figure.title),
    parts.finding,
    parts.form,
    parts.readout,
    parts.stage,
    parts.numbers,
    parts.footer,
  );
  return parts;
}

// Fills in what a look leaves open, and what a change of view or kind has made impossible.
function complete({ figure, look }) {
  const group = groupOf(figure, look),
    layers = group.map(({ layer }) => layer).filter((layer) => layer !== null),
    heads = new Set(group.flatMap((panel) => panel.heads));
  look.layers = look.layers.filter((layer) => layers.includes(layer));
  if (!look.layers.length) look.layers = look.view === "grid" ? layers : layers.slice((layers.length - 1) >> 1).slice(0, 1);
  look.heads = look.heads.filter((head) => heads.has(head));
  if (look.view === "picture" && !figure.sides[group[0].src].picture) look.view = "heat";
  const measures = [...measuresOf(figure, look).keys()];
  look.measures = look.measures.filter((name) => measures.includes(name));
  if (!look.measures.length) look.measures = measures.slice(0, 1);
  if (look.pin && look.pin[1] >= figure.sides[group[0][look.pin[0]]].tokens.length) look.pin = null;
}

function change(view, patch, onLook) {
  const { look, figure } = view,
    before = groupOf(figure, look)[0],
    single = look.heads.length === 1,
    wasGrid = look.view === "grid";
  Object.assign(look, patch);
  if (patch.view === "grid" && !wasGrid) {
    view.kept = [before && look.layers, look.heads, look.measures];
    Object.assign(look, { layers: [], heads: [] });
    swapContributions(before, look, true);
  }
  if (patch.view && patch.view !== "grid" && wasGrid && view.kept) {
    [look.layers, look.heads, look.measures] = view.kept;
    view.kept = null;
  }
  if ("heads" in patch && look.view !== "grid" && single !== (look.heads.length === 1))
    swapContributions(before, look, look.heads.length === 1);
  const now = groupOf(figure, look)[0];
  if (now.tgt !== before.tgt || now.src !== before.src) Object.assign(look, { pin: null });
  if ("kind" in patch && look.view === "grid") look.layers = [];
  if (Object.keys(patch).some((name) => name !== "pin")) view.spot = { ...NO_SPOT };
  complete(view);
  onLook({ ...look });
  return render(view).catch((error) =>
    view.readout.replaceChildren(
      `These numbers could not be read (${error.message}). Choose them again to try once more.`,
    ),
  );
}

// A change to or from a single head brings its own contributions: those of one head, or of all heads together.
function swapContributions(panel, look, one) {
  const [from, to] = [!one, one].map((headed) => ofRole(panel, "contribution", headed)?.name);
  if (to && !look.measures.includes(to)) look.measures = look.measures.map((name) => (name === from ? to : name));
}

async function render(view) {
  const { figure, look } = view,
    turn = ++view.turn;
  view.root.setAttribute("aria-busy", "true");
  choices(view, { save: (form) => save(view, form) });
  const needed = new Set([null, ...look.measures].flatMap((name) => panelsOf(figure, look, name)));
  await figure.load([...needed].map(({ index }) => index)).catch((error) => {
    view.root.setAttribute("aria-busy", "false");
    throw error;
  });
  if (turn !== view.turn) return; // another change came meanwhile
  view.maps = look.view === "grid" ? [] : shownMaps(figure, look);
  for (const map of view.maps) map.rescaled = look.rescale && map.hides && !map.signed;
  arrange(view);
  headline(view);
  view.footer.replaceChildren(
    ...footnotes(figure, look, view.maps).map((text) => element("p", {}, text)),
    element("p", { class: "signature" }, figure.signature),
  );
  if (view.numbers.open) numbers(view);
  const exact = await exactNumbers(view);
  if (turn !== view.turn) return;
  if (exact) {
    putExact(view, exact);
    arrange(view);
    if (view.numbers.open) numbers(view);
  }
  view.root.setAttribute("aria-busy", "false");
  prefetch(view);
}

// The layers beside the one shown are unpacked while nothing else happens.
function prefetch({ figure, look }) {
  const group = groupOf(figure, look),
    at = group.findIndex(({ layer }) => layer === look.layers[0]);
  const beside = [group[at + 1], group[at - 1]].filter(Boolean).map(({ index }) => index);
  (window.requestIdleCallback || setTimeout)(() => figure.load(beside).catch(() => {}));
}

// A click pins what is under it, opens a thumbnail, or lets go of what was pinned.
function pick(view, spot) {
  if (!spot) return;
  if (spot.thumb) {
    const [layer, head] = spot.thumb;
    view.kept = null;
    view.change({ view: "heat", layers: layer === null ? [] : [layer], heads: head === null ? [] : [head] });
    return;
  }
  const { tgt, src } = panelsOf(view.figure, view.look)[0];
  const pin =
    spot.patch !== undefined
      ? [tgt === src ? "tgt" : "src", spot.patch]
      : spot.row !== null
        ? ["tgt", spot.row]
        : ["src", spot.column];
  view.change({ pin: String(view.look.pin) === String(pin) ? null : pin });
}

function point(view, spot) {
  if (
    ["row", "column"].every((name) => spot[name] === view.spot[name]) &&
    String(spot.thumb) === String(view.spot.thumb)
  )
    return;
  view.spot = spot;
  draw(view);
}

function numbers(view) {
  const lines = table(view.figure, view.look, view.maps, view.scenes)
    .split("\n\n")[0]
    .split("\n")
    .map((line) => line.split("\t"));
  const most = 160,
    wide = Math.max(...lines.map((line) => line.length)),
    short = (cell) => (cell !== "" && Number.isFinite(Number(cell)) && cell.length > 6 ? digits(Number(cell)) : cell);
  const rows = lines
    .slice(0, most)
    .map((line, i) =>
      element("tr", {}, ...line.slice(0, most).map((cell, j) => element(i && j ? "td" : "th", {}, short(cell)))),
    );
  const note =
    lines.length > most || wide > most ? [element("p", {}, "Only a part is shown here; Copy takes all.")] : [];
  view.numbers.replaceChildren(
    view.numbers.firstElementChild,
    ...note,
    element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...rows))),
  );
}

// Buttons for what leaves the page: pictures on white, and the numbers.
function save(view, form) {
  const { figure, look } = view,
    name = `normlens-${look.view}`;
  action(form, "svg", "SVG", "save what is on screen as SVG, on white, for paper", () =>
    download(new Blob([asSvg(figure, ...lightParts(view))], { type: "image/svg+xml" }), `${name}.svg`),
  );
  action(form, "png", "PNG", "save what is on screen as PNG, on white", async () =>
    download(await asPng(figure, ...lightParts(view)), `${name}.png`),
  );
  action(form, "copy", "Copy numbers", "copy the numbers on screen, tab-separated", async (event) => {
    const button = event.currentTarget;
    if (await copy(table(figure, look, view.maps, view.scenes), view.root)) {
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = "Copy numbers";
      }, 1500);
    }
  });
}

function lightParts(view) {
  const scenes = scenesOf(view, view.width, "light"),
    marks = { ...NO_SPOT, pin: view.look.pin };
  const parts = scenes.map((scene, k) => {
    const map = scene.map || view.maps[k];
    return {
      scene,
      map,
      where: `${map.where}${basis(view, map, k)}`,
      scale: { heat: "ramp", grid: "ramp", lines: "tone", picture: "tone" }[view.look.view],
    };
  });
  return [parts, marks, footnotes(view.figure, view.look, view.maps)];
}

function listen(view) {
  view.stage.addEventListener("keydown", (event) => key(view, event));
  view.numbers.addEventListener("toggle", () => view.numbers.open && numbers(view));
  let width = view.root.clientWidth;
  const sizes = new ResizeObserver(() => {
    if (view.root.clientWidth && width !== (width = view.root.clientWidth)) arrange(view);
    fitFrame(view.root);
  });
  sizes.observe(view.root);
  const system = matchMedia("(prefers-color-scheme: dark)"),
    repaint = () => {
      paintTheme(view.root);
      arrange(view);
    };
  system.addEventListener("change", repaint);
  view.close = () => {
    sizes.disconnect();
    system.removeEventListener("change", repaint);
  };
}

function paintTheme(root) {
  root.ownerDocument.documentElement.dataset.theme = themeNow();
}

// In a notebook the frame is made as tall as its content, where the browser lets us.
function fitFrame(root) {
  try {
    const height = root.getBoundingClientRect().height; // 0 while the notebook hides the output
    if (window.frameElement && height) window.frameElement.style.height = `${Math.ceil(height) + 4}px`;
  } catch {
    /* another origin keeps its own height and scrolls */
  }
}
