// The picture in words: the finding, the numbers under the cursor, what a reader must know, the numbers to copy.

import { ofRole, oneMap, panelsOf, received, tokensOf } from "./shown.js";

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

// What special tokens receive and contribute, else the token whose two shares differ most. Hidden tokens count.
function found(figure, look) {
  const panels = panelsOf(figure, look),
    { tokens, special } = figure.sides[panels[0].src];
  const attention = ofRole(panels[0], "attention", true),
    contribution = ofRole(panels[0], "contribution", look.heads.length === 1);
  if (!attention || !contribution || attention.signed) return "";
  const all = { ...look, hide: [], unit: "tokens", rescale: false },
    pin = look.pin?.[0] === "tgt" && look.view !== "grid" ? look.pin : null;
  const [weight, norm] = [attention, contribution].map(
    ({ name }) => received(oneMap(figure, all, panels, name), pin).amounts,
  );
  let chosen = [...tokens.keys()].filter((j) => special[j]);
  const gap = (j) => Math.abs(weight[j] - norm[j]),
    sum = (shares) => chosen.reduce((total, j) => total + shares[j], 0);
  if (!chosen.length) chosen = [[...tokens.keys()].reduce((best, j) => (gap(j) > gap(best) ? j : best), 0)];
  const unique = [...new Set(chosen.map((j) => tokens[j]))],
    names = [unique.slice(0, -1).join(", "), unique.at(-1)].filter(Boolean).join(" and "),
    query = pin ? `For the query ${quoted(figure.sides[panels[0].tgt].tokens[pin[1]] ?? "")}, ` : "";
  return { names, several: unique.length > 1, weight: percent(sum(weight)), norm: percent(sum(norm)), query };
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

const thumbName = (layer, head) =>
  layer === null ? "this map" : `L${layer}${head === null ? ", all heads" : `H${head}`}`;

// What stands above the picture while a cell is pointed at: [{text, tone}].
export function readout(figure, look, maps, spot) {
  if (look.view === "grid")
    return [
      {
        text: spot.thumb
          ? `${thumbName(...spot.thumb)}: click to open it`
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
          ? `key ${name(side, column)}`
          : column === null
            ? `query ${name(target, row)}`
            : `query ${name(target, row)}, key ${name(side, column)}`,
    },
  ];
  for (const map of maps) {
    const tone = map.signed ? null : map.tone;
    if (map.strip) {
      const at = { tgt: row, src: column, head: null }[map.across];
      if (at !== null && map.columns.some((token) => token.at.includes(at)))
        words.push({
          text: `${map.label} ${digits(meanColumn(map, at))}${map.rows.length > 1 ? ", mean of heads" : ""}`,
          tone,
        });
    } else if (row !== null && column !== null) words.push({ text: `${map.label} ${told(map, row, column)}`, tone });
    else words.push({ text: `${map.label}: ${mostOf(map, row, column)}`, tone });
  }
  return words;
}

// Of a query, its largest key; of a key, its part of the whole.
function mostOf(map, row, column) {
  const got = received(map, row !== null ? ["tgt", row] : null),
    number = (amount) => (got.shares ? percent(amount) : digits(amount));
  if (column !== null) {
    const j = got.tokens.findIndex((token) => token.at.includes(column));
    return j < 0 ? "hidden" : `${number(got.amounts[j])}${got.shares ? " of the total" : ""}`;
  }
  const most = got.amounts.reduce((best, amount, j) => (Math.abs(amount) > Math.abs(got.amounts[best]) ? j : best), 0);
  return `largest key ${quoted(got.tokens[most].label)}, ${number(got.amounts[most])}`;
}

const hints = {
  heat: "Point at a cell for its numbers; click to pin its row, or a label to pin its token.",
  lines: "Point at a token for its lines; click to pin it. Queries on the left, keys on the right.",
  grid: "Point at a thumbnail for its name; click to open it.",
  signed: "Means over all queries. Pin a token to see the keys of this query alone.",
  bars: "Shares over all queries. Pin a token to see the keys of this query alone.",
  picture: "Colour: each patch as a key, over all queries. Click a patch to see the keys of this query alone.",
};

export function footnotes(figure, look, maps) {
  const panels = panelsOf(figure, look),
    panel = panels[0],
    worst = Math.max(...figure.panels.map(({ error }) => error ?? 0));
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
      "Words: pieces of a key add up, those of a query are averaged; maps without queries or keys are averaged.",
    );
  if (look.view === "grid") notes.push("A thumbnail shows the largest cell of each of its patches.");
  if (look.view === "lines") notes.push("Lines below 4 % of the scale are left out until a token is pointed at.");
  if (look.view === "bars")
    notes.push(
      figure.difference
        ? "Bars are differences of numbers, each panel on its own axis."
        : "Bars of shares have one axis, so that measures can be compared.",
    );
  else if (look.view === "picture") notes.push("Colours go up to the largest patch of each picture.");
  else
    notes.push(
      look.scale === "shared"
        ? "One scale for all layers and heads of a measure."
        : "Each panel has its own scale, up to the largest cell shown.",
    );
  const rebuilt =
    panel.error === null
      ? ""
      : ` The parts rebuild ${panel.name} to ${panel.error.toExponential(1)} (relative; worst of all blocks ${worst.toExponential(1)}).`;
  const axes = maps.length && maps.every(({ strip }) => strip) ? "" : `Rows are queries${sides(panel.tgt)}, columns are keys${sides(panel.src)}.`;
  if (axes || rebuilt) notes.push(`${axes}${rebuilt}`.trim());
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
      for (const { panel, head, top } of thumbs) line([map.label, panel.layer ?? panel.name, head ?? "all", short(top)]);
  } else if (look.view === "bars" || look.view === "picture") {
    const got = scenes.map((scene) => scene.got);
    const heads = maps.map((map, k) => `${map.label} ${map.where}${got[k].shares ? ", share" : ""}`);
    const rows = Math.max(...got.map(({ tokens }) => tokens.length)),
      apart = got.some(({ tokens }) => tokens.some(({ label }, i) => label !== got[0].tokens[i]?.label));
    line(apart ? heads.flatMap((head) => ["token", head]) : ["token", ...heads]);
    for (let i = 0; i < rows; i++)
      line(
        apart
          ? got.flatMap(({ tokens, amounts }) => (tokens[i] ? [tokens[i].label, short(amounts[i])] : ["", ""]))
          : [got[0].tokens[i].label, ...got.map(({ amounts }) => short(amounts[i]))],
      );
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
