// Tokens beside a picture: how large, in which ink, and which of them where there is not room for all.

import { shorten } from "./pens.js";

export const TILT = (-58 * Math.PI) / 180,
  MAX_CANVAS = 12000;
export const labelSize = (space) => Math.max(9, Math.min(13, space * 0.8));

export function labelStyle(token, space, marked, ink) {
  return {
    size: marked ? Math.max(11, labelSize(space)) : labelSize(space),
    bold: marked,
    italic: !marked && token.special,
    fill: marked ? ink.text : token.special ? ink.accent : ink.muted,
  };
}

export function drawLabel(pen, token, x, y, room, space, marked, ink, place = {}) {
  const style = labelStyle(token, space, marked, ink);
  pen.text(shorten(token.label, room, style), x, y, { ...style, ...place });
}

// Which tokens get a label: the marked ones, then special ones, then what fits between.
export function labelled(tokens, space, marked) {
  const every = Math.max(1, Math.ceil((labelSize(space) + 1) / space)),
    taken = new Array(tokens.length).fill(false),
    chosen = [];
  const choose = (i) => {
    if (i < 0 || taken[i]) return;
    chosen.push(i);
    taken.fill(true, Math.max(0, i - every + 1), i + every);
  };
  marked.forEach(choose);
  tokens.forEach((token, i) => token.special && choose(i));
  tokens.forEach((_, i) => choose(i));
  return chosen;
}

// The place among tokens of a position of the text; -1 if it is hidden.
export const placeOf = (tokens, at) =>
  at === null || at === undefined ? -1 : tokens.findIndex((token) => token.at.includes(at));
