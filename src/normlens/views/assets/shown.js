// What a look makes of a figure: the very numbers a picture shows. The same steps, in the same order, as in shown.py.

import { addMap, bound, mean } from "./data.js";

export const groupOf = (figure, look) => figure.groups[look.kind].map((index) => figure.panels[index]);
export const headsOf = (panel, look) => panel.heads.filter((head) => !look.heads.length || look.heads.includes(head));

// The chosen layers; of layers that differ in their heads, those that are like the first.
export function panelsOf(figure, look) {
  const chosen = groupOf(figure, look).filter(
    (panel) => look.layers.includes(panel.layer) && headsOf(panel, look).length,
  );
  return chosen.filter((panel) => String(headsOf(panel, look)) === String(headsOf(chosen[0], look)));
}

export function shownMaps(figure, look) {
  const panels = panelsOf(figure, look);
  return look.measures.filter((name) => panels[0].maps.has(name)).map((name) => oneMap(figure, look, panels, name));
}

export function oneMap(figure, look, panels, name) {
  const panel = panels[0],
    map = panel.maps.get(name),
    strip = map.axes === "head src",
    heads = headsOf(panel, look);
  const columns = tokensOf(figure.sides[panel.src], look);
  const rows = strip ? headRows(heads) : tokensOf(figure.sides[panel.tgt], look);
  let values = strip ? strips(panels, name, heads) : overHeads(panels, name, heads);
  let height = strip ? heads.length : panel.rows;
  values = mergeColumns(values, height, panel.columns, columns.all, strip);
  if (!strip) {
    values = mergeRows(values, columns.all.length, rows.all);
    height = rows.all.length;
  }
  const totals = rowSums(values, columns.all.length, rows);
  values = cut(values, columns.all.length, rows, columns, look.rescale && !strip && !map.signed ? totals : null);
  let own = 0;
  for (const value of values) own = Math.max(own, Math.abs(value));
  const top = look.scale === "shared" ? Math.max(own, largest(figure, look, name)) : own;
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
    tone: map.tone,
    signed: map.signed,
    where: whereOf(panels, map, look),
    strip,
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

const headRows = (heads) => {
  const rows = heads.map((head, at) => ({ at: [at], label: `H${head}`, special: false }));
  return { kept: rows, all: rows };
};

function overHeads(panels, name, heads) {
  const values = new Float32Array(panels[0].rows * panels[0].columns);
  for (const panel of panels) {
    const chosen = panel.maps.get(name).axes === "tgt src" ? [0] : heads.map((head) => panel.heads.indexOf(head));
    for (const head of chosen) addMap(panel, name, head, values, 1 / (chosen.length * panels.length));
  }
  return values;
}

function strips(panels, name, heads) {
  const { columns } = panels[0],
    values = new Float32Array(heads.length * columns);
  for (const panel of panels)
    heads.forEach((head, row) => {
      addMap(
        panel,
        name,
        panel.heads.indexOf(head),
        values.subarray(row * columns, (row + 1) * columns),
        1 / panels.length,
      );
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

function mergeColumns(values, rows, columns, tokens, averaged) {
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

function largest(figure, look, name) {
  return Math.max(
    ...groupOf(figure, look)
      .filter((panel) => panel.maps.has(name))
      .map((panel) => {
        const map = panel.maps.get(name),
          several = map.axes === "head tgt src" && headsOf(panel, look).length > 1;
        return several ? map.mean : Math.max(...map.scales);
      }),
  );
}

function whereOf(panels, map, look) {
  const names = panels.map(({ name }) => name),
    heads = headsOf(panels[0], look),
    layers = names.length === 1 ? names[0] : `mean of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  if (map.axes === "tgt src") return layers + (map.name === "summed_norms" ? ", all heads summed" : "");
  if (heads.length === 1) return panels.length === 1 ? `${layers}H${heads[0]}` : `${layers}, H${heads[0]}`;
  return map.axes === "head src" ? `${layers}, each head` : `${layers}, mean of ${heads.length} heads`;
}

// What each token receives (no pin, or a pinned row), or who takes from a pinned column: shares where that means
// something, else the numbers themselves. Hidden tokens keep their share; the same as in bars.py.
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
  return { tokens, amounts, shares, from: column >= 0 ? columns[column] : null, into: row >= 0 ? rows[row] : null };
}
