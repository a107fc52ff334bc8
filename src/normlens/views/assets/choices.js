// What can be chosen: chips for views, measures, layers and heads, and what is hidden, counted or pinned.

import { chips, element, menu, toggle } from "./controls.js";
import { groupOf } from "./shown.js";

const KINDS = { self: "self-attention", encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
const VIEWS = {
  heat: ["heat map", "rows look, columns are looked at"], lines: ["lines", "two columns of tokens and lines between them"],
  bars: ["bars", "what each token receives"], grid: ["all heads", "every layer and head at a glance"], picture: ["picture", "patches on the image"],
};
const HINTS = {
  weights: "attention weight α: how much a token is looked at", transformed_norms: "‖f(x)‖: how much a token would give, before weighting",
  weighted_norms: "‖αf(x)‖: what a head really moves", summed_norms: "‖Σₕ αf(x)‖: what all heads together really move",
};

// Builds the form anew from the look; whoever had the keyboard keeps it. `save` adds its buttons at the end.
export function choices(view, { save }) {
  const { form, figure, look } = view, focused = form.contains(document.activeElement) ? document.activeElement : null;
  const group = groupOf(figure, look), panel = group[0], grid = look.view === "grid", several = view.several || grid, kinds = Object.keys(figure.groups);
  const made = document.createDocumentFragment(), picture = Boolean(figure.sides[panel.src].picture), line = () => made.appendChild(element("div", { class: "line" }));
  const first = line();
  chips(first, "view", "View", Object.entries(VIEWS).filter(([name]) => name !== "picture" || picture).map(([value, [label, hint]]) => ({ value, label, hint })), { chosen: [look.view], onPick: (name) => view.change({ view: name }) });
  if (kinds.length > 1) chips(first, "kind", "Attention", kinds.map((kind) => ({ value: kind, label: KINDS[kind] || kind })), { chosen: [look.kind], onPick: (kind) => view.change({ kind }) });
  const measures = [...panel.maps.values()].map(({ name, label }) => ({ value: name, label, hint: HINTS[name] }));
  chips(first, "measures", "Measures", measures, { several: true, chosen: look.measures, onPick: (names) => view.change({ measures: names.length ? names : look.measures }) });
  const second = line();
  chips(second, "layers", "Layer", group.map(({ layer, name }) => ({ value: layer, label: name })), { several, chosen: look.layers, onPick: (layers) => view.change({ layers: [].concat(layers) }) });
  const heads = panel.heads.map((head) => ({ value: head, label: `H${head}` }));
  if (several) {
    const all = look.heads.length ? look.heads : panel.heads;
    chips(second, "heads", "Heads", heads, { several, chosen: all, onPick: (chosen) => view.change({ heads: chosen.length === panel.heads.length ? [] : chosen }) });
  } else {
    chips(second, "heads", "Head", [{ value: "all", label: "all heads" }, ...heads], { chosen: look.heads.length === 1 ? look.heads : ["all"], onPick: (head) => view.change({ heads: head === "all" ? [] : [head] }) });
  }
  if (!grid) toggle(second, "several", "several", view.several, (on) => { view.several = on; view.change(on ? {} : { layers: look.layers.slice(0, 1), heads: look.heads.length === 1 ? look.heads : [] }); }, "choose several layers and heads: their mean is shown");
  const third = line(), any = (name) => [panel.tgt, panel.src].some((side) => figure.sides[side][name].some(Boolean)), hide = (name, on) => view.change({ hide: on ? [...look.hide, name] : look.hide.filter((one) => one !== name) });
  if (look.view !== "bars" && look.view !== "picture") chips(third, "scale", "Scale", [{ value: "own", label: "own", hint: "each panel has its own scale" }, { value: "shared", label: "shared", hint: "one scale for all layers and heads of a measure" }], { chosen: [look.scale], onPick: (name) => view.change({ scale: name }) });
  if (look.view === "bars") chips(third, "order", "Order", [{ value: "text", label: "of the text" }, { value: "size", label: "largest first" }], { chosen: [look.order], onPick: (order) => view.change({ order }) });
  const pieces = [panel.tgt, panel.src].some((side) => figure.sides[side].words.some((word, i, all) => word !== null && word === all[i - 1]));
  if (pieces) chips(third, "unit", "Count", [{ value: "tokens", label: "tokens" }, { value: "words", label: "words", hint: "join the pieces of a word" }], { chosen: [look.unit], onPick: (unit) => view.change({ unit }) });
  if (any("special")) toggle(third, "special", "hide special tokens", look.hide.includes("special"), (on) => hide("special", on));
  if (any("punctuation")) toggle(third, "punctuation", "hide punctuation", look.hide.includes("punctuation"), (on) => hide("punctuation", on));
  if (look.hide.length && !figure.signed) toggle(third, "rescale", "rescale the rest", look.rescale, (on) => view.change({ rescale: on }), "bring each row back to its sum before");
  if (!grid) menu(third, "pin", "Pinned", pins(figure, panel), look.pin ? look.pin.join(" ") : "", (value) => view.change({ pin: value ? [value.split(" ")[0], Number(value.split(" ")[1])] : null }));
  save(third.appendChild(element("div", { class: "actions" })));
  form.replaceChildren(made);
  if (focused) (form.querySelector(`[name="${focused.name}"]${focused.type === "radio" ? ":checked" : focused.value && focused.type === "checkbox" && focused.value !== "on" ? `[value="${focused.value}"]` : ""}`) || view.stage).focus();
}

function pins(figure, panel) {
  const list = (axis) => figure.sides[panel[axis]].tokens.map((token, at) => [`${axis} ${at}`, `${at} ${token}`]);
  return [["", [["", "nothing"]]], ["looks (row)", list("tgt")], ["is looked at (column)", list("src")]];
}
