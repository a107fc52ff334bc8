// Two columns of tokens with lines between them: queries on the left, keys on the right.

import { toneOf } from "./color.js";
import { MAX_CANVAS, drawLabel, labelSize, labelled, placeOf } from "./labels.js";
import { textWidth } from "./pens.js";

export const FAINTEST = 0.04; // of the scale: weaker lines are left out when all are shown
const MOST = 6000;

export function lineScenes(maps, { width }) {
  const flat = maps.map((map) =>
    map.strip ? { ...map, rows: [{ at: [-1], label: map.rows.length > 1 ? "mean of heads" : map.label, special: false }], values: meanRow(map) } : map,
  );
  return flat.map((map) => lineScene(map, Math.min(width, 620)));
}

function meanRow({ values, rows, columns }) {
  const mean = new Float32Array(columns.length);
  values.forEach((value, i) => {
    mean[i % columns.length] += value / rows.length;
  });
  return mean;
}

function lineScene(map, width) {
  const { rows, columns } = map,
    count = Math.max(rows.length, columns.length);
  const step = Math.min(MAX_CANVAS / count, count > 100 ? 12 : count > 40 ? 16 : 22),
    space = Math.min(step, 16),
    style = { size: labelSize(space), bold: true };
  const widest = (tokens) =>
    Math.min(width * 0.3, Math.max(...tokens.map(({ label }) => textWidth(label, style)))) + 12;
  const left = widest(rows),
    right = width - widest(columns),
    top = 8,
    y = (i) => top + (i + 0.5) * step;
  const all = strongest(map, FAINTEST),
    { top: end } = map;

  function draw(pen, { pin, row, column }, ink) {
    const over = map.strip ? -1 : placeOf(rows, row),
      across = placeOf(columns, { tgt: row, src: column, head: null }[map.across]);
    const pinRow = pin && pin[0] === "tgt" && !map.strip ? placeOf(rows, pin[1]) : -1,
      pinColumn = pin && pin[0] === map.across ? placeOf(columns, pin[1]) : -1;
    const [from, to] = over >= 0 || across >= 0 ? [over, across] : [pinRow, pinColumn];
    const lines = from >= 0 || to >= 0 ? strongest(map, 0.004, from, to) : all;
    for (const [i, j, value] of lines) {
      const part = Math.abs(value) / end;
      pen.line(left, y(i), right, y(j), {
        stroke: toneOf(map, value, ink),
        width: 0.6 + 3.4 * part,
        opacity: Math.max(0.06, part ** 0.8),
      });
    }
    for (const i of labelled(rows, step, [from]))
      drawLabel(pen, rows[i], left - 7, y(i), left - 9, space, i === from, ink, { anchor: "end" });
    for (const j of labelled(columns, step, [to]))
      drawLabel(pen, columns[j], right + 7, y(j), width - right - 8, space, j === to, ink);
  }

  function hit(x, at) {
    const place = Math.floor((at - top) / step),
      middle = (left + right) / 2;
    const token = (x < middle ? rows : columns)[place];
    if (!token || (x < middle && token.at[0] < 0) || (x >= middle && map.across === "head")) return null;
    return x < middle || map.across === "tgt" ? { row: token.at[0], column: null } : { row: null, column: token.at[0] };
  }
  return { width, height: top + count * step + 8, draw, hit };
}

// Lines above a share of the scale, the strongest last so that they lie on top.
function strongest({ rows, columns, values, top }, least, row = -1, column = -1) {
  const found = [];
  for (let i = row < 0 ? 0 : row; i < (row < 0 ? rows.length : row + 1); i++) {
    for (let j = column < 0 ? 0 : column; j < (column < 0 ? columns.length : column + 1); j++) {
      const value = values[i * columns.length + j];
      if (top > 0 && Math.abs(value) >= least * top) found.push([i, j, value]);
    }
  }
  return found.sort((a, b) => Math.abs(a[2]) - Math.abs(b[2])).slice(-MOST);
}
