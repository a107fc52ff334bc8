// The very numbers a picture shows, given what is chosen. The same steps, in the same order, as in shown.py.

import { addMap, bound, mean } from "./data.js";

export const groupOf = (figure, look) => figure.groups[look.kind].map((index) => figure.panels[index]);
export const headsOf = (panel, look) => panel.heads.filter((head) => !look.heads.length || look.heads.includes(head));

// The chosen layers, or those of them that have a measure; of layers that differ in their heads, those like the first.
export function panelsOf(figure, look, name = null) {
  const layers = groupOf(figure, look).filter((panel) => panel.layer === null || look.layers.includes(panel.layer)),
    chosen = layers.filter((panel) => headsOf(panel, look).length || !panel.heads.length),
    having = name === null ? chosen : chosen.filter((panel) => panel.maps.has(name));
  if (!having.length && name !== null) return besideOf(figure, look).filter((panel) => panel.maps.has(name));
  return having.filter((panel) => String(headsOf(panel, look)) === String(headsOf(having[0], look)));
}

// Panels of no layer whose maps can stand beside those of the group, as they have the same sides.
function besideOf(figure, look) {
  const group = groupOf(figure, look),
    [{ tgt, src }] = group;
  return figure.panels.filter(
    (panel) => panel.layer === null && !group.includes(panel) && panel.tgt === tgt && panel.src === src,
  );
}

// The maps there are to choose from, by name; on a picture only those with a number for each patch.
export function measuresOf(figure, look) {
  const maps = new Map();
  for (const panel of [...groupOf(figure, look), ...besideOf(figure, look)])
    for (const map of panel.maps.values())
      if (!maps.has(map.name) && (look.view !== "picture" || isOnSource(panel, map))) maps.set(map.name, map);
  return maps;
}

const isOnSource = (panel, map) => map.matrix || map.across === "src" || (map.across === "tgt" && panel.tgt === panel.src);

// The first matrix of a role: "attention" or "contribution", for single heads or not.
export const ofRole = (panel, role, headed) =>
  [...panel.maps.values()].find((map) => map.role === role && map.matrix && map.headed === headed);

export function shownMaps(figure, look) {
  return look.measures
    .map((name) => [name, panelsOf(figure, look, name)])
    .filter(([, panels]) => panels.length)
    .map(([name, panels]) => oneMap(figure, look, panels, name));
}

export function oneMap(figure, look, panels, name) {
  const panel = panels[0],
    map = panel.maps.get(name),
    strip = !map.matrix,
    chosen = headsOf(panel, look),
    heads = chosen.length ? chosen : panel.heads;
  const columns = axisOf(figure, panel, map.across, heads, look);
  const rows = strip ? (map.axes.length === 2 ? headTokens(heads) : single(map)) : axisOf(figure, panel, "tgt", heads, look);
  let values = strip ? strips(panels, name, heads) : overHeads(panels, name, heads);
  values = mergeColumns(values, values.length / countOf(panel, map.across, heads), columns.all, strip);
  if (!strip) values = mergeRows(values, columns.all.length, rows.all);
  const totals = rowSums(values, columns.all.length, rows);
  values = cut(values, columns.all.length, rows, columns, look.rescale && !strip && !map.signed ? totals : null);
  let own = 0;
  for (const value of values) own = Math.max(own, Math.abs(value));
  const top = look.scale === "shared" ? Math.max(own, largest(figure, look, panel, name)) : own;
  const off = mean(
    panels.map((one) =>
      bound(
        one,
        name,
        heads.map((head) => one.heads.indexOf(head)),
      ),
    ),
  );
  return {
    name,
    label: map.label,
    says: map.says,
    tone: map.tone,
    signed: map.signed,
    where: whereOf(panels, map, heads),
    strip,
    across: map.across,
    rows: rows.kept,
    columns: columns.kept,
    hides: rows.kept.length < rows.all.length || columns.kept.length < columns.all.length,
    values,
    totals,
    top,
    off,
    panels,
    heads,
    side: panel.src,
    target: panel.tgt,
  };
}

const whole = (tokens) => ({ kept: tokens, all: tokens });
const headTokens = (heads) => whole(heads.map((head, at) => ({ at: [at], label: `H${head}`, special: false })));
const single = (map) => whole([{ at: [0], label: map.label, special: false }]);
const countOf = (panel, axis, heads) => ({ head: heads.length, tgt: panel.rows, src: panel.columns })[axis];
const axisOf = (figure, panel, axis, heads, look) =>
  axis === "head" ? headTokens(heads) : tokensOf(figure.sides[panel[axis]], look);

function overHeads(panels, name, heads) {
  const values = new Float32Array(panels[0].rows * panels[0].columns);
  for (const panel of panels) {
    const chosen = panel.maps.get(name).headed ? heads.map((head) => panel.heads.indexOf(head)) : [0];
    for (const head of chosen) addMap(panel, name, head, values, 1 / (chosen.length * panels.length));
  }
  return values;
}

// A row for each head, or a single one; of a map that has nothing but heads, those that are chosen.
function strips(panels, name, heads) {
  const { across, axes } = panels[0].maps.get(name),
    at = (panel) => heads.map((head) => panel.heads.indexOf(head));
  if (across === "head") {
    const values = new Float32Array(heads.length);
    for (const panel of panels)
      at(panel).forEach((head, i) => {
        values[i] += panel.maps.get(name).codes[head] / panels.length;
      });
    return values;
  }
  const wide = countOf(panels[0], across, heads),
    values = new Float32Array((axes.length === 2 ? heads.length : 1) * wide);
  for (const panel of panels)
    (axes.length === 2 ? at(panel) : [0]).forEach((head, row) => {
      addMap(panel, name, head, values.subarray(row * wide, (row + 1) * wide), 1 / panels.length);
    });
  return values;
}

// The tokens (or words) of a side that are in sight, and all of them; hiding never leaves an empty picture.
export function tokensOf(side, look) {
  const all = [];
  side.tokens.forEach((token, at) => {
    const word = side.words[at],
      last = all.at(-1);
    if (look.unit === "words" && word !== null && last && side.words[last.at[0]] === word) last.at.push(at);
    else all.push({ at: [at] });
  });
  for (const token of all) {
    const word = side.words[token.at[0]];
    token.special = token.at.every((at) => side.special[at]);
    token.mark = token.at.every((at) => side.punctuation[at]);
    token.label =
      look.unit === "words" && word !== null && side.spelled.length
        ? side.spelled[word]
        : token.at.map((at) => side.tokens[at]).join("");
  }
  const kept = all.filter(
    (token) => !(token.special && look.hide.includes("special")) && !(token.mark && look.hide.includes("punctuation")),
  );
  return { kept: kept.length ? kept : all, all };
}

function mergeColumns(values, rows, tokens, averaged) {
  const columns = values.length / rows;
  if (tokens.length === columns) return values;
  const merged = new Float32Array(rows * tokens.length);
  for (let i = 0; i < rows; i++)
    tokens.forEach(({ at }, j) => {
      for (const column of at)
        merged[i * tokens.length + j] += values[i * columns + column] / (averaged ? at.length : 1);
    });
  return merged;
}

function mergeRows(values, columns, tokens) {
  if (tokens.length * columns === values.length) return values;
  const merged = new Float32Array(tokens.length * columns);
  tokens.forEach(({ at }, i) => {
    for (const row of at)
      for (let j = 0; j < columns; j++) merged[i * columns + j] += values[row * columns + j] / at.length;
  });
  return merged;
}

const places = (tokens) => tokens.kept.map((token) => tokens.all.indexOf(token));

// What each row in sight adds up to, hidden columns included.
function rowSums(values, stride, rows) {
  return places(rows).map((row) => {
    let total = 0;
    for (let j = 0; j < stride; j++) total += values[row * stride + j];
    return total;
  });
}

// Without what is hidden; with `totals`, what is left of each row is brought back to the row's sum before.
function cut(values, stride, rows, columns, totals) {
  if (rows.kept.length === rows.all.length && columns.kept.length === columns.all.length) return values;
  const across = places(columns),
    left = new Float32Array(rows.kept.length * across.length);
  places(rows).forEach((row, i) => {
    let after = 0;
    across.forEach((column, j) => {
      after += left[i * across.length + j] = values[row * stride + column];
    });
    if (totals && after) for (let j = 0; j < across.length; j++) left[i * across.length + j] *= totals[i] / after;
  });
  return left;
}

function largest(figure, look, panel, name) {
  const group = groupOf(figure, look);
  return Math.max(
    ...(group.includes(panel) ? group : [panel])
      .filter((one) => one.maps.has(name))
      .map((one) => {
        const map = one.maps.get(name),
          several = map.matrix && map.headed && headsOf(one, look).length > 1;
        return several ? map.mean : Math.max(...map.scales);
      }),
  );
}

function whereOf(panels, map, heads) {
  const names = panels.map(({ name }) => name),
    layers = names.length === 1 ? names[0] : `mean of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  if (!map.headed) return layers + (map.role === "contribution" && panels[0].layer !== null ? ", all heads summed" : "");
  if (heads.length === 1) return panels.length === 1 ? `${layers}H${heads[0]}` : `${layers}, H${heads[0]}`;
  return map.matrix ? `${layers}, mean of ${heads.length} heads` : `${layers}, each head`;
}

// One number for each key (over all queries, or for a pinned one), or for each query of a pinned key: shares where that
// means something, else the numbers themselves. Hidden tokens keep their share; the same as in bars.py. `axis`: what a token
// of it is in the picture, a row, a column, or neither.
export function received(map, pin) {
  const { rows, columns, values, totals } = map,
    width = columns.length;
  const place = (tokens, at) => tokens.findIndex((token) => token.at.includes(at));
  const column = pin && pin[0] === "src" && !map.strip ? place(columns, pin[1]) : -1;
  const row = pin && pin[0] === "tgt" && !map.strip ? place(rows, pin[1]) : -1;
  const tokens = column >= 0 ? rows : columns,
    sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  let amounts = tokens.map((_, k) => {
    if (column >= 0) return values[k * width + column];
    if (row >= 0) return values[row * width + k];
    let total = 0;
    for (let i = 0; i < rows.length; i++) total += values[i * width + k];
    return total / rows.length;
  });
  const whole = column >= 0 ? sum(amounts) : row >= 0 ? totals[row] : sum(totals) / rows.length,
    shares = !map.signed && !map.strip;
  if (shares) amounts = amounts.map((amount) => (whole > 0 ? amount / whole : 0));
  const axis = map.strip ? { tgt: "row", src: "column", head: null }[map.across] : column >= 0 ? "row" : "column";
  return {
    tokens,
    amounts,
    shares,
    axis,
    from: column >= 0 ? columns[column] : null,
    into: row >= 0 ? rows[row] : null,
  };
}
