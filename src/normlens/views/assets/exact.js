// Exact numbers of the pinned token, when they can be had: in the file, or from a server.

import { headsOf, panelsOf } from "./shown.js";

// For each map a function from (row, column) to its exact number, or null.
export async function exactNumbers({ figure, look, maps }) {
  if (!look.pin || figure.exact || look.view === "grid") return null;
  const panels = panelsOf(figure, look), lines = await Promise.all(panels.map((panel) => figure.exactly(panel, ...look.pin).catch(() => null)));
  if (lines.some((one) => !one)) return null;
  return new Map(maps.filter((map) => !map.strip).map((map) => [map.name, (row, column) => {
    const [axis, at] = look.pin;
    if ((axis === "tgt" ? row : column) !== at) return undefined;
    let total = 0;
    panels.forEach((panel, k) => { total += exactCell(panel, lines[k], map.name, axis === "tgt" ? column : row, axis, at, headsOf(panel, look)) / panels.length; });
    return total;
  }]));
}

function exactCell(panel, lines, name, place, axis, at, heads) {
  const length = axis === "tgt" ? panel.columns : panel.rows, map = panel.maps.get(name);
  if (map.axes === "tgt src") return lines.get(name)[place];
  const column = axis === "tgt" ? place : at;
  return heads.reduce((total, head) => {
    const h = panel.heads.indexOf(head), stored = map.coding === "product" ? "weights" : name;
    const factor = map.coding === "product" ? panel.maps.get("transformed_norms").codes[h * panel.columns + column] : 1;
    return total + lines.get(stored)[h * length + place] * factor;
  }, 0) / heads.length;
}
