// A heat map: cells, labels, the cell under the cursor, the pinned row or column.

import { paint, stopsOf } from "./color.js";
import { MAX_CANVAS, TILT, drawLabel, labelSize, labelled, placeOf } from "./labels.js";
import { cellImage, textWidth } from "./pens.js";

const MAX_CELL = 44,
  MIN_CELL = 3;

// One picture per map; they share their layout, so that rows and columns line up.
export function heatScenes(maps, { width, theme }) {
  const layout = layoutOf(maps, width);
  return maps.map((map) => heatScene(map, layout, theme));
}

function layoutOf(maps, width) {
  const columns = maps.reduce((most, map) => (map.columns.length > most.length ? map.columns : most), []),
    style = { size: labelSize((width - 60) / columns.length), bold: true };
  const widest = (tokens, cap) => Math.min(cap, Math.max(...tokens.map(({ label }) => textWidth(label, style))));
  const left = Math.ceil(Math.max(...maps.map(({ rows }) => widest(rows, width < 420 ? 76 : 104)))) + 10,
    name = Math.ceil(Math.max(...maps.map((map) => widest(map.columns, 92))));
  const lean = Math.min(Math.ceil(name * Math.cos(TILT)), 40),
    ratio = window.devicePixelRatio || 1;
  const fitted = Math.floor(((width - left - lean) / columns.length) * ratio) / ratio;
  const cell = Math.max(Math.min(MIN_CELL, MAX_CANVAS / columns.length), Math.min(MAX_CELL, fitted));
  return { left, top: Math.ceil(name * -Math.sin(TILT)) + 14, name, cell, right: lean };
}

function heatScene(map, layout, theme) {
  const { left, top, cell, name } = layout,
    { rows, columns } = map,
    wide = columns.length * cell,
    high = rows.length * cell;
  const colours = paint(map.values, map.top, map.signed, stopsOf(map, theme)),
    image = cellImage(colours, columns.length, rows.length);
  const pinned = (pin, axis, tokens) => (pin && pin[0] === axis ? placeOf(tokens, pin[1]) : -1);

  function draw(pen, { pin, row: over, column: across }, ink) {
    pen.cells(image, colours, left, top, wide, high);
    if (cell >= 10) gaps(pen, ink);
    const pinRow = map.strip ? -1 : pinned(pin, "tgt", rows),
      pinColumn = pinned(pin, map.across, columns);
    const veil = (x, y, w, h) => pen.rect(x, y, w, h, { fill: ink.ground, opacity: 0.62 });
    if (pinRow >= 0) {
      veil(left, top, wide, pinRow * cell);
      veil(left, top + (pinRow + 1) * cell, wide, high - (pinRow + 1) * cell);
    }
    if (pinColumn >= 0) {
      veil(left, top, pinColumn * cell, high);
      veil(left + (pinColumn + 1) * cell, top, wide - (pinColumn + 1) * cell, high);
    }
    const row = map.strip ? -1 : placeOf(rows, over) >= 0 ? placeOf(rows, over) : pinRow,
      place = placeOf(columns, { tgt: over, src: across, head: null }[map.across]),
      column = place >= 0 ? place : pinColumn;
    if (row >= 0) pen.rect(left - 0.5, top + row * cell - 0.5, wide + 1, cell + 1, { stroke: ink.text, opacity: 0.55 });
    if (column >= 0)
      pen.rect(left + column * cell - 0.5, top - 0.5, cell + 1, high + 1, { stroke: ink.text, opacity: 0.55 });
    if (row >= 0 && column >= 0)
      pen.rect(left + column * cell - 1, top + row * cell - 1, cell + 2, cell + 2, { stroke: ink.text, width: 2 });
    for (const i of labelled(rows, cell, [row]))
      drawLabel(pen, rows[i], left - 7, top + (i + 0.5) * cell, left - 8, cell, i === row, ink, { anchor: "end" });
    for (const i of labelled(columns, cell, [column]))
      drawLabel(pen, columns[i], left + (i + 0.5) * cell + 2, top - 6, name + 2, cell, i === column, ink, {
        turn: TILT,
      });
  }

  function gaps(pen, ink) {
    for (let i = 1; i < columns.length; i++) pen.rect(left + i * cell - 0.5, top, 1, high, { fill: ink.ground });
    for (let i = 1; i < rows.length; i++) pen.rect(left, top + i * cell - 0.5, wide, 1, { fill: ink.ground });
  }

  // The cell at a point; on a label, its row or column alone.
  function hit(x, y) {
    const row = rows[Math.floor((y - top) / cell)],
      column = columns[Math.floor((x - left) / cell)];
    const token = x >= left && column && (map.across === "head" ? null : column.at[0]),
      spot = map.across === "tgt" ? { row: token, column: null } : { row: null, column: token };
    if (map.strip) return x >= left && column && (y < top || row) && token !== null ? spot : null;
    if (x >= left && y >= top && row && column) return { row: row.at[0], column: column.at[0] };
    if (x < left && y >= top && row) return { row: row.at[0], column: null };
    return y < top && x >= left && column ? spot : null;
  }
  return { width: left + wide + layout.right, height: top + high + 2, draw, hit };
}
