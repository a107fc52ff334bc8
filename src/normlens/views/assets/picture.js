// Patches of an image, coloured by a measure: for the pinned patch as the query, or over all queries.

import { toneOf } from "./color.js";
import { received } from "./shown.js";
import { digits, percent } from "./telling.js";

const LARGEST = 440,
  BESIDE = 84;

export function pictureScenes(figure, maps, { width, look }) {
  return maps.map((map) => pictureScene(figure, map, Math.min(width, LARGEST + BESIDE), look));
}

function pictureScene(figure, map, width, look) {
  const side = figure.sides[map.side],
    { rows, columns, first, image } = side.picture,
    got = received(map, look.pin?.[0] === "tgt" ? look.pin : null);
  const amounts = new Map(got.tokens.map((token, k) => [token.at[0], got.amounts[k]]));
  const before = got.tokens.filter((token) => token.at[0] < first || token.at[0] >= first + rows * columns).slice(0, 8),
    beside = before.length ? BESIDE : 0;
  const cell = (width - beside) / columns,
    left = beside,
    high = rows * cell,
    end = Math.max(0, ...got.amounts.map(Math.abs));
  const patches = [...Array(rows * columns).keys()].map((k) => ({
    at: first + k,
    x: left + (k % columns) * cell,
    y: Math.floor(k / columns) * cell,
  }));
  const told = (amount) => (got.shares ? percent(amount) : digits(amount)),
    patchEnd = Math.max(0, ...patches.map(({ at }) => Math.abs(amounts.get(at) || 0)));

  function draw(pen, { pin, row, column }, ink) {
    pen.image(image, left, 0, width - beside, high);
    pen.rect(left, 0, width - beside, high, { fill: "#ffffff", opacity: 0.45 });
    for (const { at, x, y } of patches) {
      const amount = amounts.get(at) || 0;
      if (patchEnd > 0 && amount)
        pen.rect(x, y, cell, cell, { fill: toneOf(map, amount, ink), opacity: 0.88 * (Math.abs(amount) / patchEnd) });
    }
    before.forEach((token, k) => {
      const amount = amounts.get(token.at[0]),
        y = 6 + k * 62;
      pen.rect(8, y + 16, 30, 30, { fill: toneOf(map, amount, ink), opacity: end > 0 ? Math.abs(amount) / end : 0 });
      pen.rect(8, y + 16, 30, 30, { stroke: ink.muted });
      pen.text(token.label, 8, y + 6, { size: 12, fill: ink.accent, italic: true });
      pen.text(told(amount), 42, y + 31, { size: 11, fill: ink.muted });
    });
    const frame = (at, thick) => {
      const patch = patches.find((one) => one.at === at);
      if (patch) pen.rect(patch.x, patch.y, cell, cell, { stroke: ink.text, width: thick });
    };
    if (pin && (pin[0] === "src" || map.side === map.target)) frame(pin[1], 3);
    frame(row ?? column, 1.5);
  }

  function hit(x, y) {
    if (x >= left) {
      const patch = patches[Math.floor(y / cell) * columns + Math.floor((x - left) / cell)];
      return patch && y < high ? { row: null, column: patch.at, patch: patch.at } : null;
    }
    const token = before[Math.floor((y - 6) / 62)];
    return token ? { row: null, column: token.at[0], patch: token.at[0] } : null;
  }
  return { width, height: Math.max(high, before.length * 62 + 8), draw, hit, got, ends: { patches: patchEnd, told } };
}

// Images are decoded before the first picture is drawn, and in grey, so that colour means only one thing.
export async function decodePictures(figure) {
  for (const side of figure.sides) {
    if (!side.picture || side.picture.image) continue;
    const image = new Image();
    image.src = side.picture.src;
    await image.decode();
    side.picture.image = grey(image);
  }
}

function grey(image) {
  const canvas = document.createElement("canvas"),
    pen = canvas.getContext("2d");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  pen.drawImage(image, 0, 0);
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height),
    { data } = pixels;
  for (let i = 0; i < data.length; i += 4)
    data[i] = data[i + 1] = data[i + 2] = 0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2];
  pen.putImageData(pixels, 0, 0);
  return canvas;
}
