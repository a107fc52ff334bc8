// The picture in words: the finding, the numbers under the cursor, what a reader must know, the numbers to copy.

import { oneMap, panelsOf, received, tokensOf } from "./shown.js";

export const digits = (value) =>
  value === 0 ? "0" : Math.abs(value) < 0.001 ? value.toExponential(1) : value.toPrecision(3);
export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
export const quoted = (token) => `“\u2068${token}\u2069”`; // isolated, so a right-to-left token keeps to itself
const precise = (value) => (Math.abs(value) < 0.001 && value !== 0 ? value.toExponential(4) : value.toPrecision(5));
const joined = (figure, side, at) => figure.sides[side].tokens[at];

// The headline, kept once it is made: it counts every cell of the chosen layers and heads.
export function finding(figure, look) {
  const key = JSON.stringify([look.kind, look.layers, look.heads, look.pin, look.view === "grid"]);
  figure.findings ??= new Map();
  if (!figure.findings.has(key)) figure.findings.set(key, found(figure, look));
  return figure.findings.get(key);
}

// What special tokens draw and give, else the token whose two shares differ most. Hidden tokens count.
function found(figure, look) {
  const panels = panelsOf(figure, look),
    { tokens, special } = figure.sides[panels[0].src];
  const moved = look.heads.length === 1 ? "weighted_norms" : "summed_norms";
  if (!["weights", moved].every((name) => panels[0].maps.has(name)) || panels[0].maps.get("weights").signed) return "";
  const all = { ...look, hide: [], unit: "tokens", rescale: false },
    pin = look.pin?.[0] === "tgt" && look.view !== "grid" ? look.pin : null;
  const [weight, norm] = ["weights", moved].map((name) => received(oneMap(figure, all, panels, name), pin).amounts);
  let chosen = [...tokens.keys()].filter((j) => special[j]);
  const gap = (j) => Math.abs(weight[j] - norm[j]),
    sum = (shares) => chosen.reduce((total, j) => total + shares[j], 0);
  if (!chosen.length) chosen = [[...tokens.keys()].reduce((best, j) => (gap(j) > gap(best) ? j : best), 0)];
  const names = [...new Set(chosen.map((j) => tokens[j]))].join(" "),
    into = pin ? `, as ${quoted(tokens[pin[1]] ?? "")} sees it` : "";
  return { names, weight: percent(sum(weight)), norm: percent(sum(norm)), into };
}

// The number of one map at a cell, with how far it may be off; nothing is added where it is exact.
function told(map, row, column) {
  const i = map.rows.findIndex((token) => token.at.includes(row)),
    j = map.columns.findIndex((token) => token.at.includes(column));
  const value = map.values[i * map.columns.length + j],
    sure = map.sure && (map.sure[0] === "tgt" ? row : column) === map.sure[1];
  return !map.off || sure ? precise(value) : `${digits(value)} ± ${digits(map.off)}`;
}

function meanColumn(map, column) {
  const j = map.columns.findIndex((token) => token.at.includes(column));
  let total = 0;
  for (let i = 0; i < map.rows.length; i++) total += map.values[i * map.columns.length + j];
  return total / map.rows.length;
}

// What stands above the picture while a cell is pointed at: [{text, tone}].
export function readout(figure, look, maps, spot) {
  if (look.view === "grid")
    return [
      {
        text: spot.thumb
          ? `L${spot.thumb[0]}${spot.thumb[1] === null ? ", all heads" : `H${spot.thumb[1]}`}: click to open it`
          : hints.grid,
      },
    ];
  const { target, side } = maps[0],
    pinned = (axis) => (look.pin?.[0] === axis ? look.pin[1] : null);
  const row = spot.row ?? pinned("tgt"),
    column = spot.column ?? pinned("src"),
    name = (index, at) => quoted(joined(figure, index, at));
  if (column === null && row === null)
    return [{ text: figure.difference && look.view === "bars" ? hints.signed : hints[look.view] }];
  const words = [
    {
      text:
        row === null
          ? `${name(side, column)} is looked at`
          : column === null
            ? `${name(target, row)} looks`
            : `${name(target, row)} looks at ${name(side, column)}`,
    },
  ];
  for (const map of maps) {
    const tone = map.signed ? null : map.tone;
    if (map.strip) {
      if (column !== null)
        words.push({
          text: `${map.label} ${digits(meanColumn(map, column))}${map.rows.length > 1 ? ", mean of heads" : ""}`,
          tone,
        });
    } else if (row !== null && column !== null) words.push({ text: `${map.label} ${told(map, row, column)}`, tone });
    else words.push({ text: `${map.label}: ${mostOf(map, row, column)}`, tone });
  }
  return words;
}

// Of a row, whom it takes most from; of a column, how much it gives.
function mostOf(map, row, column) {
  const got = received(map, row !== null ? ["tgt", row] : null),
    number = (amount) => (got.shares ? percent(amount) : digits(amount));
  if (column !== null) {
    const j = got.tokens.findIndex((token) => token.at.includes(column));
    return j < 0 ? "hidden" : `${number(got.amounts[j])} of all`;
  }
  const most = got.amounts.reduce((best, amount, j) => (Math.abs(amount) > Math.abs(got.amounts[best]) ? j : best), 0);
  return `most from ${quoted(got.tokens[most].label)}, ${number(got.amounts[most])}`;
}

const hints = {
  heat: "Point at a cell for its numbers; click to pin its row, or a label to pin its token.",
  lines: "Point at a token for its lines; click to pin it. Left looks, right is looked at.",
  grid: "Point at a thumbnail for its name; click to open it.",
  signed: "Means over all rows. Pin a token to see what it alone receives more or less of, and from whom.",
  bars: "Shares received over all rows. Pin a token to see what it alone receives, and from whom.",
  picture: "Colour: what each patch gives to all. Click a patch to see what it takes, and from where.",
};

export function footnotes(figure, look, maps) {
  const panels = panelsOf(figure, look),
    panel = panels[0],
    worst = Math.max(...figure.panels.map(({ error }) => error));
  const sides = (index) => (figure.sides.length > 1 ? ` (${figure.sides[index].name})` : ""),
    notes = figure.note && !figure.difference ? [figure.note] : [];
  if (hiding(figure, look)) {
    const what = look.hide
      .map((name) => ({ special: "special tokens", punctuation: "punctuation" })[name])
      .join(" and ");
    notes.push(
      `Hidden: ${what}. ${look.rescale && !figure.difference ? `What is left of each row is rescaled to the row's sum before${maps.some(({ signed }) => signed) ? ", except where numbers are below 0" : ""}.` : "The remaining numbers are as they were, so rows no longer add up to their sum."}`,
    );
  }
  if (look.unit === "words")
    notes.push(
      "Words: pieces of a word that is looked at add up, those of a word that looks are averaged; ‖f(x)‖ is averaged.",
    );
  if (look.view === "grid") notes.push("A thumbnail shows the largest cell of each of its patches.");
  if (look.view === "lines") notes.push("Lines weaker than 4 % of the scale are left out until a token is pointed at.");
  if (look.view === "bars")
    notes.push(
      figure.difference
        ? "Bars are differences of numbers, each panel on its own axis."
        : "Bars of shares have one axis, so that measures can be compared.",
    );
  else if (look.view === "picture") notes.push("Colours go up to the strongest patch of each picture.");
  else
    notes.push(
      look.scale === "shared"
        ? "One scale for all layers and heads of a measure."
        : "Each panel has its own scale, up to the largest cell shown.",
    );
  notes.push(
    `Rows${sides(panel.tgt)} look, columns${sides(panel.src)} are looked at. The parts rebuild ${panel.name} to ${panel.error.toExponential(1)} (relative; worst of all blocks ${worst.toExponential(1)}).`,
  );
  if (figure.exact) notes.push("All numbers are exact to 32 bits.");
  else {
    const off = maps
      .filter((map) => map.off)
      .map((map) => `${map.label} ± ${digits(map.off)}`)
      .join(", ");
    const all = maps.every(({ signed }) => signed),
      some = !all && maps.some(({ signed }) => signed);
    notes.push(
      `Stored in ${all ? 16 : 8} bits${some ? " (signed weights in 16)" : ""}, off by at most 1/${all ? "65,534" : "255"} of the largest in its head${off ? ` (${off})` : ""}; exact for a token pinned in Python (pin=) or in the explorer.`,
    );
  }
  return notes;
}

// Whether anything is out of sight; where all would be, nothing is.
function hiding(figure, look) {
  const panel = panelsOf(figure, look)[0];
  return [panel.tgt, panel.src].some((side) => {
    const { kept, all } = tokensOf(figure.sides[side], look);
    return kept.length < all.length;
  });
}

// What is on screen, as tab-separated text for a spreadsheet: the numbers, an empty line, then what must be known of them.
export function table(figure, look, maps, scenes) {
  const lines = [],
    line = (cells) => lines.push(cells.join("\t")),
    short = (number) => Number(number.toPrecision(7));
  if (look.view === "grid") {
    line(["measure", "layer", "head", "largest"]);
    for (const { map, thumbs } of scenes)
      for (const { panel, head, top } of thumbs) line([map.label, panel.layer, head ?? "all", short(top)]);
  } else if (look.view === "bars" || look.view === "picture") {
    const got = scenes.map((scene) => scene.got);
    line(["token", ...maps.map((map, k) => `${map.label} ${map.where}${got[k].shares ? ", share" : ""}`)]);
    got[0].tokens.forEach((token, i) => line([token.label, ...got.map((one) => short(one.amounts[i]))]));
  } else {
    for (const map of maps) {
      line([`${map.label} ${map.where}`, ...map.columns.map(({ label }) => label)]);
      map.rows.forEach(({ label }, i) =>
        line([label, ...Array.from(map.values.subarray(i * map.columns.length, (i + 1) * map.columns.length), short)]),
      );
    }
  }
  return `${[...lines, "", figure.title, ...footnotes(figure, look, maps), figure.signature].join("\n")}\n`;
}
