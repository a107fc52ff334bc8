// All layers and heads at a glance: a thumbnail each, largest cell of every patch, so that a thin diagonal stays in sight.

import { paint, stopsOf } from "./color.js";
import { decoder } from "./data.js";
import { cellImage } from "./pens.js";
import { headsOf, oneMap, panelsOf, tokensOf } from "./shown.js";

const FINE = 48; // cells a side of a thumbnail, at most

export function gridScenes(figure, { width, theme, look }) {
  return look.measures.map((name) => gridScene(figure, name, Math.min(width, 900), theme, look)).filter(Boolean);
}

function gridScene(figure, name, width, theme, look) {
  const panels = panelsOf(figure, look, name),
    map = panels[0]?.maps.get(name);
  if (!map) return null;
  const heads = map.headed && map.axes.length > 1 ? headsOf(panels[0], look) : [null],
    left = 34,
    top = 20,
    gap = 2;
  const size = Math.max(10, Math.min(heads.length > 1 ? 76 : 120, Math.floor((width - left) / heads.length) - gap)),
    high = map.matrix ? size : Math.max(8, size >> 1);
  const thumbs = panels.flatMap((panel, i) =>
    heads.map((head, j) => ({ panel, head, i, j, ...thumbnail(figure, panel, name, head, look) })),
  );
  const shared = look.scale === "shared" ? thumbs.reduce((most, thumb) => Math.max(most, thumb.top), 0) : null,
    { rows, columns } = thumbs[0];
  const drawn = [name, look.kind, look.layers, look.heads, look.unit, look.hide, look.rescale, look.scale, theme].join(
    " ",
  );
  figure.sheets ??= new Map();
  if (!figure.sheets.has(drawn))
    figure.sheets.set(drawn, sheet(thumbs, heads.length, map, shared, stopsOf(map, theme)));
  const image = figure.sheets.get(drawn);

  function draw(pen, { thumb: over }, ink) {
    heads.forEach(
      (head, j) =>
        size >= 18 &&
        pen.text(head === null ? (panels[0].heads.length ? "all heads" : "") : `H${head}`, left + j * (size + gap) + size / 2, top - 9, {
          size: head === null ? 12 : Math.min(12, size / 2.4),
          fill: ink.muted,
          anchor: "middle",
        }),
    );
    panels.forEach((panel, i) =>
      pen.text(panel.layer === null ? "" : panel.name, left - 6, top + i * (high + gap) + high / 2, { size: 12, fill: ink.muted, anchor: "end" }),
    );
    for (const { i, j, panel, head } of thumbs) {
      const x = left + j * (size + gap),
        y = top + i * (high + gap),
        here = over && over[0] === panel.layer && over[1] === head;
      pen.part(image, j * columns, i * rows, columns, rows, x, y, size, high);
      pen.rect(x, y, size, high, { stroke: here ? ink.text : ink.line, width: here ? 2 : 1 });
    }
  }

  function hit(x, y) {
    const panel = panels[Math.floor((y - top) / (high + gap))],
      head = heads[Math.floor((x - left) / (size + gap))];
    return panel && head !== undefined && x >= left && y >= top ? { thumb: [panel.layer, head] } : null;
  }
  const layers = panels[0].layer === null ? panels[0].name : `${panels.length} layers`,
    where = `${layers}${heads[0] !== null ? ` × ${heads.length} heads` : map.role === "contribution" && panels[0].layer !== null ? ", all heads summed" : ""}`;
  return {
    width: left + heads.length * (size + gap),
    height: top + panels.length * (high + gap),
    draw,
    hit,
    map: { ...map, where, top: shared },
    thumbs,
  };
}

// All thumbnails in one image, which is many times faster than one image each.
function sheet(thumbs, across, map, shared, stops) {
  const { rows, columns } = thumbs[0],
    wide = across * columns,
    colours = new Uint32Array(wide * (thumbs.length / across) * rows);
  for (const { values, top, i, j } of thumbs) {
    const painted = paint(values, shared ?? top, map.signed, stops);
    for (let row = 0; row < rows; row++)
      colours.set(painted.subarray(row * columns, (row + 1) * columns), (i * rows + row) * wide + j * columns);
  }
  return cellImage(colours, wide, colours.length / wide);
}

// The cells of one thumbnail, kept for the next time; a thumbnail is made once for each way to count tokens.
function thumbnail(figure, panel, name, head, look) {
  const key = [panel.index, name, head, look.unit, look.hide, look.rescale].join(" ");
  figure.thumbs ??= new Map();
  if (!figure.thumbs.has(key))
    figure.thumbs.set(
      key,
      look.unit === "tokens" && !look.rescale && panel.maps.get(name).matrix
        ? quick(figure, panel, name, head, look)
        : slow(figure, panel, name, head, look),
    );
  return figure.thumbs.get(key);
}

function slow(figure, panel, name, head, look) {
  const one = { ...look, heads: head === null ? [] : [head], scale: "own" },
    map = oneMap(figure, one, [panel], name);
  return pooled(map.values, map.rows.length, map.columns.length);
}

// Straight from the codes: the largest code of a column is that of its largest cell.
function quick(figure, panel, name, head, look) {
  const h = head === null ? 0 : panel.heads.indexOf(head),
    { codes, factors, turn, absolute } = decoder(panel, name, h),
    start = h * panel.rows * panel.columns;
  const kept = (side) => Int32Array.from(tokensOf(figure.sides[side], look).kept, ({ at }) => at[0]),
    rows = kept(panel.tgt),
    columns = kept(panel.src);
  const high = Math.min(FINE, rows.length),
    width = columns.length,
    crest = new Float32Array(high * width);
  for (let i = 0; i < rows.length; i++) {
    const into = Math.floor((i * high) / rows.length) * width,
      from = start + rows[i] * panel.columns;
    for (let j = 0; j < width; j++) {
      const code = codes[from + columns[j]],
        most = crest[into + j];
      if ((code < 0 ? -code : code) > (most < 0 ? -most : most)) crest[into + j] = code;
    }
  }
  for (let i = 0; i < crest.length; i += width)
    for (let j = 0; j < width; j++) {
      const code = absolute ? Math.abs(crest[i + j]) : crest[i + j];
      crest[i + j] = factors[columns[j]] * (turn ? turn[code] : code);
    }
  return pooled(crest, high, width);
}

function pooled(cells, rows, columns) {
  const high = Math.min(FINE, rows),
    wide = Math.min(FINE, columns),
    values = new Float32Array(high * wide);
  const into = Int32Array.from({ length: columns }, (_, j) => Math.floor((j * wide) / columns));
  let top = 0;
  for (let i = 0; i < rows; i++) {
    const line = Math.floor((i * high) / rows) * wide;
    for (let j = 0; j < columns; j++) {
      const value = cells[i * columns + j],
        size = value < 0 ? -value : value,
        most = values[line + into[j]];
      if (size > (most < 0 ? -most : most)) values[line + into[j]] = value;
      if (size > top) top = size;
    }
  }
  return { values, rows: high, columns: wide, top };
}
