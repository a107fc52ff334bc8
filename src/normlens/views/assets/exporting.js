// What is on screen, as a file: SVG and PNG with captions, scales and signature, on a light ground, for paper.

import { inkOf, stopsOf } from "./color.js";
import { canvasPen, svgPen, textWidth } from "./pens.js";
import { digits } from "./telling.js";

const PAD = 16,
  HEAD = 30,
  LINE = 14,
  NOTE = { size: 10 };

// parts: [{map, scene, where, scale}] in the light theme; notes: what a reader must know.
export function asSvg(figure, parts, marks, notes) {
  const size = sizeOf(figure, parts, notes),
    pen = svgPen(size.width, size.height);
  compose(pen, parts, marks, size);
  return pen.written(`${figure.title}: ${parts.map(({ map, where }) => `${map.label} ${where}`).join("; ")}`);
}

export function asPng(figure, parts, marks, notes) {
  const size = sizeOf(figure, parts, notes),
    canvas = document.createElement("canvas");
  const ratio = Math.min(3, 16000 / size.width, 16000 / size.height, Math.sqrt(2e8 / (size.width * size.height)));
  compose(canvasPen(canvas, size.width, size.height, ratio), parts, marks, size);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function sizeOf(figure, parts, notes) {
  const widths = parts.map(({ map, scene, where }) =>
    Math.max(scene.width, textWidth(`${map.label}  ${where}`, { size: 15, bold: true }) + 8, 300),
  );
  const width = widths.reduce((sum, one) => sum + one + PAD, PAD),
    lines = [...notes, figure.signature].flatMap((text) => wrapped(text, width - 2 * PAD));
  return {
    widths,
    width,
    lines,
    height: HEAD + Math.max(...parts.map(({ scene }) => scene.height)) + 34 + lines.length * LINE + 8,
  };
}

// A text as lines that fit.
function wrapped(text, room) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && textWidth(longer, NOTE) > room) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function compose(pen, parts, marks, { width, height, widths, lines }) {
  const ink = inkOf("light");
  pen.rect(0, 0, width, height, { fill: ink.ground });
  let x = PAD;
  parts.forEach(({ map, scene, where, scale }, k) => {
    pen.text(map.label, x, 18, { size: 15, bold: true, fill: map.signed ? ink.text : ink[map.tone] });
    pen.text(where, x + textWidth(map.label, { size: 15, bold: true }) + 8, 18, { size: 13, fill: ink.muted });
    pen.shift(x, HEAD, () => scene.draw(pen, marks, ink));
    if (scale && map.top !== null) drawScale(pen, map, scene, scale, x, HEAD + scene.height + 14, ink);
    x += widths[k] + PAD;
  });
  lines.forEach((line, k) =>
    pen.text(line, PAD, height - 8 - (lines.length - k - 0.5) * LINE, { ...NOTE, fill: ink.muted }),
  );
}

// From 0, or from below it, to the end of the scale: in the colours of cells, or in one colour more and more dense.
function drawScale(pen, map, scene, kind, x, y, ink) {
  const wide = 120,
    steps = 24,
    low = map.signed ? digits(-map.top) : "0",
    start = x + textWidth(low, { size: 11 }) + 6,
    stops = stopsOf(map, "light");
  pen.text(low, x, y, { size: 11, fill: ink.muted });
  if (kind === "ramp" || map.signed)
    stops.forEach((stop, i) =>
      pen.rect(start + (i * wide) / stops.length, y - 5, wide / stops.length + 0.5, 10, { fill: stop }),
    );
  else
    for (let i = 0; i < steps; i++)
      pen.rect(start + (i * wide) / steps, y - 5, wide / steps, 10, { fill: ink[map.tone], opacity: (i + 1) / steps });
  pen.text(scene.ends ? scene.ends.told(scene.ends.patches) : digits(map.top), start + wide + 6, y, {
    size: 11,
    fill: ink.muted,
  });
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// To the clipboard, or where a page may not reach it, into a field that is ready to be copied.
export async function copy(text, root) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const dialog = document.createElement("dialog"),
      field = document.createElement("textarea"),
      close = document.createElement("button");
    field.value = text;
    field.readOnly = true;
    field.rows = 12;
    field.cols = 70;
    field.setAttribute("aria-label", "The numbers, ready to be copied");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(field, close);
    root.append(dialog);
    dialog.showModal();
    field.select();
    return false;
  }
}
