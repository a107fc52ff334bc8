// Exact numbers of the pinned token, when they can be had: in the file, or from a server.

import { headsOf } from "./shown.js";

// For each map a function from (row, column) to its exact number, or null.
export async function exactNumbers({ figure, look, maps }) {
  if (!look.pin || figure.exact || look.view === "grid") return null;
  const panels = [...new Set(maps.filter((map) => !map.strip).flatMap((map) => map.panels))],
    lines = new Map();
  for (const panel of panels) lines.set(panel, await figure.exactly(panel, ...look.pin).catch(() => null));
  if (!panels.length || [...lines.values()].some((one) => !one)) return null;
  return new Map(
    maps
      .filter((map) => !map.strip)
      .map((map) => [
        map.name,
        (row, column) => {
          const [axis, at] = look.pin;
          if ((axis === "tgt" ? row : column) !== at) return undefined;
          let total = 0;
          for (const panel of map.panels)
            total +=
              exactCell(panel, lines.get(panel), map.name, axis === "tgt" ? column : row, axis, at, headsOf(panel, look)) /
              map.panels.length;
          return total;
        },
      ]),
  );
}

// Puts the exact numbers of the pinned row or column into the maps, so that bars and copies have them too.
export function putExact({ look, maps }, exact) {
  const [axis, at] = look.pin;
  for (const map of maps) {
    const number = exact.get(map.name),
      place = number && (axis === "tgt" ? map.rows : map.columns).findIndex((token) => token.at.includes(at));
    if (!number || place < 0 || look.unit === "words" || map.rescaled) continue;
    const wide = map.columns.length,
      columns = map.panels[0].columns;
    if (axis === "tgt") {
      map.columns.forEach((token, j) => {
        map.values[place * wide + j] = number(at, token.at[0]);
      });
      map.totals[place] = Array.from({ length: columns }, (_, j) => number(at, j)).reduce(
        (total, value) => total + value,
        0,
      );
    } else
      map.rows.forEach((token, i) => {
        map.values[i * wide + place] = number(token.at[0], at);
      });
    map.sure = look.pin;
  }
}

function exactCell(panel, lines, name, place, axis, at, heads) {
  const length = axis === "tgt" ? panel.columns : panel.rows,
    map = panel.maps.get(name);
  if (!map.headed) return lines.get(name)[place];
  const column = axis === "tgt" ? place : at;
  return (
    heads.reduce((total, head) => {
      const h = panel.heads.indexOf(head);
      if (map.coding !== "product") return total + lines.get(name)[h * length + place];
      const norm = panel.maps.get(map.of[1]).codes[h * panel.columns + column];
      return total + Math.abs(lines.get(map.of[0])[h * length + place]) * norm;
    }, 0) / heads.length
  );
}
