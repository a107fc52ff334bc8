// A number for each token, as bars: shares of the attention beside shares of the contributions, all on one axis.

import { toneOf } from "./color.js";
import { MAX_CANVAS, drawLabel, labelSize, placeOf } from "./labels.js";
import { textWidth } from "./pens.js";
import { received } from "./shown.js";
import { digits, percent } from "./telling.js";

export function barScenes(maps, { width, look }) {
  const all = maps.map((map) => received(map, look.pin)),
    first = all[0];
  const order = first.tokens.map((_, i) => i);
  if (look.order === "size") order.sort((a, b) => Math.abs(first.amounts[b]) - Math.abs(first.amounts[a]));
  const orderOf = (got) => (sameTokens(got, first) ? order : got.tokens.map((_, i) => i));
  const shares = Math.max(0, ...all.filter((one) => one.shares).flatMap((one) => one.amounts));
  return maps.map((map, k) =>
    barScene(
      map,
      all[k],
      orderOf(all[k]),
      all[k].shares ? shares : Math.max(0, ...all[k].amounts.map(Math.abs)),
      Math.min(width, 560),
    ),
  );
}

export const sameTokens = (left, right) =>
  left.tokens.length === right.tokens.length && left.tokens.every(({ label }, i) => label === right.tokens[i].label);

function barScene(map, got, order, end, width) {
  const count = order.length,
    step = Math.min(MAX_CANVAS / count, count > 60 ? 13 : 20),
    space = Math.min(step, 16),
    style = { size: labelSize(space), bold: true };
  const left = Math.min(120, Math.max(...got.tokens.map(({ label }) => textWidth(label, style)))) + 12,
    right = 58,
    top = 4;
  const room = width - left - right,
    zero = map.signed ? left + room / 2 : left,
    scale = end > 0 ? room / (map.signed ? 2 * end : end) : 0;
  const told = (amount) => (got.shares ? percent(amount) : digits(amount));

  function draw(pen, { row, column, pin }, ink) {
    const marked = placeOf(got.tokens, { row, column }[got.axis]),
      fixed = pin && got.axis ? placeOf(got.tokens, pin[1]) : -1;
    order.forEach((i, at) => {
      const y = top + (at + 0.5) * step,
        amount = got.amounts[i],
        long = amount * scale,
        thick = Math.max(2, Math.min(13, step - 4));
      if (i === marked) pen.rect(0, y - step / 2, width, step, { fill: ink.line, opacity: 0.6 });
      pen.rect(Math.min(zero, zero + long), y - thick / 2, Math.abs(long), thick, { fill: toneOf(map, amount, ink) });
      if (step >= 9 || i === marked) {
        drawLabel(
          pen,
          got.tokens[i],
          left - 7,
          y,
          left - 9,
          space,
          i === marked || (i === fixed && !got.into && !got.from),
          ink,
          { anchor: "end" },
        );
        pen.text(told(amount), (map.signed ? left + room : zero + Math.max(0, long)) + 5, y, {
          size: Math.min(12, labelSize(space)),
          fill: ink.muted,
        });
      }
    });
    pen.line(zero, top, zero, top + count * step, { stroke: ink.muted, opacity: 0.6 });
  }

  function hit(_x, y) {
    const token = got.tokens[order[Math.floor((y - top) / step)]];
    return token && got.axis ? { row: null, column: null, [got.axis]: token.at[0] } : null;
  }
  return { width, height: top + count * step + 4, draw, hit, got };
}
