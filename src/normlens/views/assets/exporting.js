// What is on screen, as a file: SVG and PNG with captions, scales and signature, on a light ground, for paper.

import { inkOf, stopsOf } from "./color.js";
import { canvasPen, svgPen, textWidth } from "./pens.js";
import { digits } from "./telling.js";

const PAD = 16, HEAD = 30, FOOT = 34;

// parts: [{map, scene}] in the light theme.
export function asSvg(figure, parts, marks) {
  const size = sizeOf(parts), pen = svgPen(size.width, size.height);
  compose(pen, figure, parts, marks, size);
  return pen.written(`${figure.title}: ${parts.map(({ map }) => `${map.label} ${map.where}`).join("; ")}`);
}

export function asPng(figure, parts, marks) {
  const size = sizeOf(parts), canvas = document.createElement("canvas");
  const ratio = Math.min(3, 16000 / size.width, 16000 / size.height, Math.sqrt(2e8 / (size.width * size.height)));
  compose(canvasPen(canvas, size.width, size.height, ratio), figure, parts, marks, size);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function sizeOf(parts) {
  const titles = parts.map(({ map, scene }) => Math.max(scene.width, textWidth(`${map.label}  ${map.where}`, { size: 15, bold: true }) + 8, 300));
  return { titles, width: titles.reduce((sum, width) => sum + width + PAD, PAD), height: HEAD + Math.max(...parts.map(({ scene }) => scene.height)) + FOOT + 34 };
}

function compose(pen, figure, parts, marks, { width, height, titles }) {
  const ink = inkOf("light");
  pen.rect(0, 0, width, height, { fill: ink.ground });
  let x = PAD;
  parts.forEach(({ map, scene }, k) => {
    pen.text(map.label, x, 18, { size: 15, bold: true, fill: map.signed ? ink.text : ink[map.tone] });
    pen.text(map.where, x + textWidth(map.label, { size: 15, bold: true }) + 8, 18, { size: 13, fill: ink.muted });
    pen.shift(x, HEAD, () => scene.draw(pen, marks, ink));
    const y = HEAD + scene.height + 14;
    if (scene.scaled !== false && map.top !== null) {
      const stops = stopsOf(map, "light"), wide = 120;
      const low = map.signed ? digits(-map.top) : "0", start = x + textWidth(low, { size: 11 }) + 6;
      pen.text(low, x, y, { size: 11, fill: ink.muted });
      stops.forEach((stop, i) => pen.rect(start + (i * wide) / stops.length, y - 5, wide / stops.length + 0.5, 10, { fill: stop }));
      pen.text(digits(map.top), start + wide + 6, y, { size: 11, fill: ink.muted });
    }
    x += titles[k] + PAD;
  });
  const fit = (text) => { let kept = text; while (kept.length > 8 && textWidth(kept, { size: 9 }) > width - 2 * PAD) kept = `${kept.slice(0, -2).trimEnd()}…`.replace("……", "…"); return kept; };
  if (figure.note) pen.text(fit(figure.note), PAD, height - 24, { size: 9, fill: ink.muted });
  pen.text(fit(figure.signature), PAD, height - 10, { size: 9, fill: ink.muted });
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
    const dialog = document.createElement("dialog"), field = document.createElement("textarea"), close = document.createElement("button");
    field.value = text; field.readOnly = true; field.rows = 12; field.cols = 70;
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
