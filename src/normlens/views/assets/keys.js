// The picture by keyboard: arrows change head and layer, with Shift they move the cell; Enter pins, Escape lets go.

import { groupOf } from "./shown.js";

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export function key(view, event) {
  const step = STEPS[event.key],
    { look, spot } = view;
  if (step && (event.shiftKey || look.view === "grid")) moveSpot(view, ...step);
  else if (step && step[1]) changeHead(view, step[1]);
  else if (step) changeLayer(view, step[0]);
  else if (event.key === "Enter" && (spot.thumb || spot.row !== null || spot.column !== null)) view.pick(spot);
  else if (event.key === "Escape") view.change({ pin: null });
  else return;
  event.preventDefault();
}

function changeHead(view, by) {
  const { heads } = groupOf(view.figure, view.look)[0],
    count = heads.length + 1;
  const place = view.look.heads.length === 1 ? heads.indexOf(view.look.heads[0]) + 1 : 0,
    next = (place + by + count) % count;
  view.change({ heads: next === 0 ? [] : [heads[next - 1]] });
}

function changeLayer(view, by) {
  const layers = groupOf(view.figure, view.look).map(({ layer }) => layer),
    place = layers.indexOf(view.look.layers[0]) + by;
  if (place >= 0 && place < layers.length) view.change({ layers: [layers[place]] });
}

// The next token in sight; in a grid the next thumbnail; in bars and lines up and down.
function moveSpot(view, down, across) {
  const { look, spot, maps, scenes, figure } = view;
  if (look.view === "grid") {
    const thumbs = scenes[0].thumbs,
      layers = [...new Set(thumbs.map(({ panel }) => panel.layer))],
      heads = [...new Set(thumbs.map(({ head }) => head))];
    const [layer, head] = spot.thumb || [layers[0], null],
      bounded = (list, at, by) => list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))];
    view.point({
      row: null,
      column: null,
      thumb: [
        bounded(layers, layers.indexOf(layer), spot.thumb ? down : 0),
        bounded(heads, heads.indexOf(head), across),
      ],
    });
    return;
  }
  const move = (tokens, at, by) => {
    const place = tokens.findIndex((token) => token.at.includes(at));
    return tokens[Math.max(0, Math.min(tokens.length - 1, place < 0 ? 0 : place + by))].at[0];
  };
  const map = maps.find((one) => !one.strip) || maps[0],
    got = scenes[0].got;
  if (look.view === "picture") {
    const { rows, columns, first } = figure.sides[map.side].picture,
      at = spot.patch ?? first - (down || across),
      next = at + down * columns + across;
    const inside = Math.max(first, Math.min(first + rows * columns - 1, next));
    view.point({ row: null, column: inside, patch: inside, thumb: null });
  } else if (look.view === "bars") {
    const { axis } = got;
    if (axis === null) return;
    view.point({ row: null, column: null, thumb: null, [axis]: move(got.tokens, spot[axis], down || across) });
  } else {
    const pinned = (axis) => (look.pin?.[0] === axis ? look.pin[1] : null);
    if (map.strip) {
      const axis = { tgt: "row", src: "column" }[map.across];
      if (axis) view.point({ row: null, column: null, thumb: null, [axis]: move(map.columns, spot[axis] ?? pinned(map.across), across || down) });
      return;
    }
    const row = move(map.rows, spot.row ?? pinned("tgt"), down),
      column = move(map.columns, spot.column ?? pinned("src"), across);
    view.point(
      look.view === "lines"
        ? down || spot.row !== null
          ? { row, column: null, thumb: null }
          : { row: null, column, thumb: null }
        : { row, column, thumb: null },
    );
  }
}
