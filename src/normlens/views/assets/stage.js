// The stage: a figure per measure, side by side, with caption, canvas and scale, and the words above them.

import { barScenes } from "./bars.js";
import { inkOf, stopsOf, themeOf } from "./color.js";
import { element } from "./controls.js";
import { gridScenes } from "./grid.js";
import { heatScenes } from "./heat.js";
import { lineScenes } from "./lines.js";
import { canvasPen } from "./pens.js";
import { pictureScenes } from "./picture.js";
import { digits, finding, readout } from "./telling.js";

export const NO_SPOT = { row: null, column: null, thumb: null };

export function scenesOf({ figure, look, maps }, width, theme) {
  const setting = { width, theme, look };
  if (look.view === "grid") return gridScenes(figure, setting);
  if (look.view === "picture") return pictureScenes(figure, maps, setting);
  return { heat: heatScenes, lines: lineScenes, bars: barScenes }[look.view](maps, setting);
}

// Figures for the measures side by side, as many as the window is wide enough for.
export function arrange(view) {
  const { stage, look } = view,
    count = look.measures.length,
    room = stage.clientWidth || 1000,
    gap = 28;
  const beside = Math.max(1, Math.min(count, Math.floor((room + gap) / (400 + gap)))),
    width = Math.floor((room - gap * (beside - 1)) / beside);
  view.width = width;
  stage.style.gridTemplateColumns = `repeat(${beside}, minmax(0, 1fr))`;
  view.scenes = scenesOf(view, width, themeOf(view.root));
  const told = view.scenes.map((scene, k) => scene.map || view.maps[k]);
  while (stage.children.length > told.length) stage.lastElementChild.remove();
  told.forEach((map, k) => {
    if (!stage.children[k]) stage.append(box(view, k));
    const figure = stage.children[k];
    figure.className = map.signed ? "signed" : map.tone;
    figure
      .querySelector("figcaption")
      .replaceChildren(element("b", map.says ? { title: map.says } : {}, map.label), ` ${map.where}${basis(view, map, k)}`);
    figure.querySelector(".scale").replaceChildren(...scale(view, map, k));
    const canvas = figure.querySelector("canvas");
    canvas.setAttribute("aria-label", described(view, map, k));
  });
  draw(view);
}

export function basis({ look, scenes }, map, k) {
  if (look.view !== "bars" && look.view !== "picture") return "";
  const { got } = scenes[k],
    share = got.shares ? ", share" : "";
  if (map.strip) return map.rows.length > 1 ? " (mean)" : "";
  if (got.from) return `${share} of each query, key “${got.from.label}”`;
  return got.into ? `${share} of each key, query “${got.into.label}”` : `${share} of each key, ${got.shares ? "all queries" : "mean over queries"}`;
}

function scale(view, map, k) {
  if (view.look.view === "bars") return [];
  if (map.top === null) return [element("small", {}, "each thumbnail has its own scale")];
  const bar = element("i"),
    theme = themeOf(view.root),
    shared = view.look.scale === "shared";
  bar.style.background = `linear-gradient(to right, ${stopsOf(map, theme).join(",")})`;
  if (["picture", "lines"].includes(view.look.view) && !map.signed)
    bar.style.background = `linear-gradient(to right, transparent, ${inkOf(theme)[map.tone]})`;
  if (view.look.view === "picture") {
    return [
      "0",
      bar,
      view.scenes[k].ends.told(view.scenes[k].ends.patches),
      element("small", {}, "up to the largest patch"),
    ];
  }
  return [
    map.signed ? digits(-map.top) : "0",
    bar,
    digits(map.top),
    element(
      "small",
      {},
      shared
        ? `shared scale of all layers${map.heads?.length === 1 ? " and heads" : ""}`
        : "own scale, up to the largest cell shown",
    ),
  ];
}

function described({ look, scenes }, map, k) {
  const what = {
    heat: "Heat map",
    lines: "Lines between tokens",
    bars: "Bars per token",
    grid: "Thumbnails",
    picture: "Patches on the image",
  }[look.view];
  if (look.view === "grid") return `${what} of ${map.label}, ${map.where}.`;
  const most =
    map.rows && look.view !== "grid"
      ? `: ${map.rows.length} rows by ${map.columns.length} columns, from ${map.signed ? digits(-map.top) : 0} to ${digits(map.top)}`
      : "";
  const got = scenes[k].got,
    top = got ? got.tokens[got.amounts.indexOf(Math.max(...got.amounts))] : null;
  return `${what} of ${map.label}, ${map.where}${most}${top ? `; most at ${top.label}` : ""}.`;
}

function box(view, k) {
  const canvas = element("canvas", { role: "img" }),
    hit = (event) => {
      const frame = canvas.getBoundingClientRect();
      return view.scenes[k].hit(event.clientX - frame.left, event.clientY - frame.top);
    };
  canvas.addEventListener("pointermove", (event) => view.point({ ...NO_SPOT, ...hit(event) }));
  canvas.addEventListener("pointerleave", () => view.point({ ...NO_SPOT }));
  canvas.addEventListener("click", (event) => view.pick(hit(event)));
  return element(
    "figure",
    {},
    element("figcaption"),
    element("div", { class: "scroll" }, canvas),
    element("div", { class: "scale" }),
  );
}

// Only what follows the cursor: cheap enough for every move of the pointer.
export function draw(view) {
  const ink = inkOf(themeOf(view.root)),
    marks = { ...view.spot, pin: view.look.pin };
  view.scenes.forEach((scene, k) => {
    const canvas = view.stage.children[k].querySelector("canvas");
    scene.draw(canvasPen(canvas, scene.width, scene.height), marks, ink);
  });
  const maps = view.maps.length ? view.maps : [{ target: 0, side: 0 }];
  view.readout.replaceChildren(
    ...readout(view.figure, view.look, maps, view.spot).map(({ text, tone }) =>
      element("span", tone ? { class: tone } : {}, text),
    ),
  );
}

export function headline(view) {
  const told = finding(view.figure, view.look);
  view.finding.hidden = !told && !view.figure.note;
  if (!told) view.finding.replaceChildren(view.figure.note);
  if (told)
    view.finding.replaceChildren(
      `${told.query}${told.names} ${told.several ? "receive" : "receives"} `,
      element("b", { class: "weight" }, `${told.weight} of the attention`),
      told.several ? " and make " : " and makes ",
      element("b", { class: "norm" }, `${told.norm} of the contributions`),
    );
}
