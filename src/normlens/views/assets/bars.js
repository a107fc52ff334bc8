// What each token receives: its share of the weight beside its share of what is moved, on one scale.

const BARS_HIGH = 150, MAX_SLOT = 90, MIN_SLOT = 7;

// columns: [{at, label, special}]; weight and norm: shares by `at`. Returns what barAt needs.
function drawBars(canvas, width, columns, weight, norm, marked, ink) {
  const left = 40, right = 14;
  const slot = Math.max(Math.min(MIN_SLOT, MAX_CANVAS / columns.length), Math.min(MAX_SLOT, (width - left - right) / columns.length));
  const probe = canvas.getContext("2d");
  probe.font = `bold ${labelSize(slot)}px ${FONT}`;
  const name = Math.min(92, Math.max(...columns.map(({ label }) => probe.measureText(label).width)));
  const top = 10, bottom = Math.ceil(name * -Math.sin(TILT)) + 16;
  const pen = surface(canvas, left + slot * columns.length + right, top + BARS_HIGH + bottom);
  const most = Math.max(1e-9, ...columns.map(({ at }) => Math.max(weight[at], norm[at])));
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5].find((size) => most / size <= 5) || 1;
  const end = Math.ceil(most / step - 1e-6) * step, scale = BARS_HIGH / end, floor = top + BARS_HIGH;
  pen.font = `11px ${FONT}`; pen.textBaseline = "middle"; pen.textAlign = "right";
  for (let tick = 0; tick <= end + 1e-9; tick += step) {
    pen.fillStyle = ink.line; pen.fillRect(left, Math.round(floor - tick * scale), slot * columns.length, 1);
    pen.fillStyle = ink.muted; pen.fillText(`${Math.round(tick * 100)} %`, left - 6, floor - tick * scale);
  }
  const thick = Math.max(2, Math.min(17, slot * 0.38)), middle = (i) => left + (i + 0.5) * slot;
  columns.forEach(({ at }, i) => {
    if (at === marked) { pen.fillStyle = ink.line; pen.fillRect(left + i * slot, top, slot, BARS_HIGH); }
    pen.fillStyle = ink.weight; pen.fillRect(middle(i) - thick - 0.5, floor - weight[at] * scale, thick, weight[at] * scale);
    pen.fillStyle = ink.norm; pen.fillRect(middle(i) + 0.5, floor - norm[at] * scale, thick, norm[at] * scale);
  });
  const spot = columns.findIndex(({ at }) => at === marked);
  for (const i of labelled(columns, slot, spot)) {
    labelStyle(pen, columns[i], slot, i === spot, ink);
    pen.save();
    pen.translate(middle(i) + 4, floor + 9); pen.rotate(TILT);
    pen.fillText(shorten(pen, columns[i].label, name + 2), 0, 0);
    pen.restore();
  }
  return { left, slot, columns };
}

function barAt(canvas, event, { left, slot, columns }) {
  const column = columns[Math.floor((event.clientX - canvas.getBoundingClientRect().left - left) / slot)];
  return column ? column.at : null;
}
