// What can be chosen: chips for views, measures, layers and heads, and what is hidden, counted or pinned.

import { chips, element, menu, toggle } from "./controls.js";
import { groupOf, measuresOf } from "./shown.js";

const KINDS = { self: "self-attention", encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
const VIEWS = [
  { value: "heat", label: "heat map", hint: "rows are queries, columns are keys" },
  { value: "lines", label: "lines", hint: "two columns of tokens and lines between them" },
  { value: "bars", label: "bars", hint: "a number for each token" },
  { value: "grid", label: "all heads", hint: "every layer and head at a glance" },
  { value: "picture", label: "picture", hint: "patches on the image" },
];
const SCALES = [
  { value: "own", label: "own", hint: "each panel has its own scale" },
  { value: "shared", label: "shared", hint: "one scale for all layers and heads of a measure" },
];
const ORDERS = [
  { value: "text", label: "of the text" },
  { value: "size", label: "largest first" },
];
const UNITS = [
  { value: "tokens", label: "tokens" },
  { value: "words", label: "words", hint: "join the pieces of a word" },
];

// Builds the form anew from the look; whoever had the keyboard keeps it. `save` adds its buttons at the end.
export function choices(view, { save }) {
  const { form } = view;
  const focused = form.contains(document.activeElement) ? document.activeElement : null;
  const lines = [whatIsShown, whichHeads, howItIsCounted].map((fill) => {
    const line = element("div", { class: "line" });
    fill(line, view, groupOf(view.figure, view.look));
    return line;
  });
  save(lines.at(-1).appendChild(element("div", { class: "actions" })));
  form.replaceChildren(...lines);
  if (focused) (form.querySelector(sameAs(focused)) || view.stage).focus();
}

// One of a list of options, bound to a field of the look.
function choice(line, view, name, legend, options) {
  chips(line, name, legend, options, { chosen: [view.look[name]], onPick: (value) => view.change({ [name]: value }) });
}

function whatIsShown(line, view, [panel]) {
  const { figure, look } = view;
  const kinds = Object.keys(figure.groups).map((kind) => ({ value: kind, label: KINDS[kind] || kind }));
  const measures = [...measuresOf(figure, look).values()].map(({ name, label, says }) => ({
    value: name,
    label,
    hint: says ? `${label}: ${says}` : "",
  }));
  const picture = figure.sides[panel.src].picture;
  choice(
    line,
    view,
    "view",
    "View",
    VIEWS.filter(({ value }) => value !== "picture" || picture),
  );
  if (kinds.length > 1) choice(line, view, "kind", "Attention", kinds);
  chips(line, "measures", "Measures", measures, {
    several: true,
    chosen: look.measures,
    onPick: (names) => view.change({ measures: names.length ? names : look.measures }),
  });
}

function whichHeads(line, view, group) {
  const { look } = view,
    { heads: there } = group[0],
    grid = look.view === "grid",
    several = view.several || grid;
  const layers = group.filter(({ layer }) => layer !== null).map(({ layer, name }) => ({ value: layer, label: name }));
  const heads = there.map((head) => ({ value: head, label: `H${head}` }));
  if (!layers.length) return;
  chips(line, "layers", "Layer", layers, {
    several,
    chosen: look.layers,
    onPick: (chosen) => view.change({ layers: [].concat(chosen) }),
  });
  if (!there.length) return;
  if (several) {
    chips(line, "heads", "Heads", heads, {
      several,
      chosen: look.heads.length ? look.heads : there,
      onPick: (chosen) => view.change({ heads: chosen.length === there.length ? [] : chosen }),
    });
  } else {
    chips(line, "heads", "Head", [{ value: "all", label: "all heads" }, ...heads], {
      chosen: look.heads.length === 1 ? look.heads : ["all"],
      onPick: (head) => view.change({ heads: head === "all" ? [] : [head] }),
    });
  }
  if (grid) return;
  const flip = (on) => {
    view.several = on;
    view.change(on ? {} : { layers: look.layers.slice(0, 1), heads: look.heads.length === 1 ? look.heads : [] });
  };
  toggle(line, "several", "several", view.several, flip, "choose several layers and heads: their mean is shown");
}

function howItIsCounted(line, view, [panel]) {
  const { figure, look } = view,
    sides = [panel.tgt, panel.src].map((side) => figure.sides[side]);
  const hides = (name, label) => {
    const flip = (on) => view.change({ hide: on ? [...look.hide, name] : look.hide.filter((one) => one !== name) });
    if (sides.some((side) => side[name].some(Boolean))) toggle(line, name, label, look.hide.includes(name), flip);
  };
  if (look.view === "bars") choice(line, view, "order", "Order", ORDERS);
  else if (look.view !== "picture") choice(line, view, "scale", "Scale", SCALES);
  if (sides.some(({ words }) => words.some((word, i) => word !== null && word === words[i - 1])))
    choice(line, view, "unit", "Count", UNITS);
  hides("special", "hide special tokens");
  hides("punctuation", "hide punctuation");
  if (look.hide.length && !figure.difference) {
    toggle(
      line,
      "rescale",
      "rescale the rest",
      look.rescale,
      (on) => view.change({ rescale: on }),
      "bring each row back to its sum before",
    );
  }
  if (look.view !== "grid") {
    const pin = (value) => view.change({ pin: value ? [value.split(" ")[0], Number(value.split(" ")[1])] : null });
    menu(line, "pin", "Pinned", pins(figure, panel), look.pin ? look.pin.join(" ") : "", pin);
  }
}

function pins(figure, panel) {
  const list = (axis) => figure.sides[panel[axis]].tokens.map((token, at) => [`${axis} ${at}`, `${at} ${token}`]);
  return [
    ["", [["", "nothing"]]],
    ["query (row)", list("tgt")],
    ["key (column)", list("src")],
  ];
}

// Where the keyboard was, found again in the new form.
function sameAs({ name, type, value }) {
  const which = type === "radio" ? ":checked" : type === "checkbox" && value !== "on" ? `[value="${value}"]` : "";
  return `[name="${name}"]${which}`;
}
