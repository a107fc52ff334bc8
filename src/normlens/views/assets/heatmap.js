// One heat map on a canvas: cells, labels, the cell under the cursor, the pinned row. Knows no state and no controls.

const FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";
const MAX_CELL = 44, MIN_CELL = 3, MAX_CANVAS = 12000, TILT = (-58 * Math.PI) / 180;

// A canvas sized in CSS pixels, sharp on any screen.
function surface(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(width * ratio); canvas.height = Math.ceil(height * ratio);
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

// A label no wider than `room`, cut with an ellipsis.
function shorten(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && pen.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}

// Space for labels and the size of a cell, shared by both maps so that their rows line up.
function layoutMaps(width, rowLabels, columnLabels) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `bold ${labelSize((width - 60) / columnLabels.length)}px ${FONT}`; // as wide as a label gets, when marked
  const widest = (labels, cap) => Math.min(cap, Math.max(...labels.map((label) => pen.measureText(label).width)));
  const left = Math.ceil(widest(rowLabels, width < 420 ? 76 : 104)) + 10, name = Math.ceil(widest(columnLabels, 92));
  const lean = Math.ceil(name * Math.cos(TILT));
  const fitted = (width - left - Math.min(lean, 40)) / columnLabels.length;
  const ratio = window.devicePixelRatio || 1;
  const cell = Math.max(Math.min(MIN_CELL, MAX_CANVAS / columnLabels.length), Math.min(MAX_CELL, Math.floor(fitted * ratio) / ratio));
  return { left, top: Math.ceil(name * -Math.sin(TILT)) + 14, name, cell, right: Math.min(lean, 40) };
}

// map: {values, stride, rows: [{at, label, special}], columns: [...], top, ramp}; marks: {row, column, pin} as `at`s.
function drawMap(canvas, map, layout, marks, ink) {
  const { left, top, cell } = layout, wide = map.columns.length * cell, high = map.rows.length * cell;
  const pen = surface(canvas, left + wide + layout.right, top + high + 2);
  const image = document.createElement("canvas");
  image.width = map.columns.length; image.height = map.rows.length;
  const data = image.getContext("2d").createImageData(image.width, image.height);
  const cells = new Uint32Array(data.data.buffer), factor = map.top > 0 ? 255 / map.top : 0;
  let next = 0;
  for (const row of map.rows) for (const column of map.columns) {
    cells[next++] = map.ramp[Math.min(255, Math.round(map.values[row.at * map.stride + column.at] * factor))];
  }
  image.getContext("2d").putImageData(data, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, left, top, wide, high);
  if (cell >= 10) drawGaps(pen, map, layout, ink);
  const row = map.rows.findIndex(({ at }) => at === marks.row), pin = map.rows.findIndex(({ at }) => at === marks.pin);
  const column = map.columns.findIndex(({ at }) => at === marks.column);
  if (pin >= 0) {
    pen.globalAlpha = 0.62; pen.fillStyle = ink.ground;
    pen.fillRect(left, top, wide, pin * cell);
    pen.fillRect(left, top + (pin + 1) * cell, wide, high - (pin + 1) * cell);
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = ink.text; pen.lineWidth = 1; pen.globalAlpha = 0.55;
  const shownRow = row >= 0 ? row : pin;
  if (shownRow >= 0) pen.strokeRect(left - 0.5, top + shownRow * cell - 0.5, wide + 1, cell + 1);
  if (column >= 0) pen.strokeRect(left + column * cell - 0.5, top - 0.5, cell + 1, high + 1);
  pen.globalAlpha = 1;
  if (shownRow >= 0 && column >= 0) {
    pen.lineWidth = 2;
    pen.strokeRect(left + column * cell - 1, top + shownRow * cell - 1, cell + 2, cell + 2);
  }
  drawLabels(pen, map, layout, shownRow, column, ink);
}

function drawGaps(pen, map, { left, top, cell }, ink) {
  pen.fillStyle = ink.ground;
  const wide = map.columns.length * cell, high = map.rows.length * cell;
  for (let i = 1; i < map.columns.length; i++) pen.fillRect(left + i * cell - 0.5, top, 1, high);
  for (let i = 1; i < map.rows.length; i++) pen.fillRect(left, top + i * cell - 0.5, wide, 1);
}

function drawLabels(pen, map, { left, top, cell, name }, row, column, ink) {
  pen.textBaseline = "middle"; pen.textAlign = "right";
  for (const i of labelled(map.rows, cell, row)) {
    labelStyle(pen, map.rows[i], cell, i === row, ink);
    pen.fillText(shorten(pen, map.rows[i].label, left - 8), left - 7, top + (i + 0.5) * cell);
  }
  pen.textAlign = "left";
  for (const i of labelled(map.columns, cell, column)) {
    labelStyle(pen, map.columns[i], cell, i === column, ink);
    pen.save();
    pen.translate(left + (i + 0.5) * cell + 2, top - 6);
    pen.rotate(TILT);
    pen.fillText(shorten(pen, map.columns[i].label, name + 2), 0, 0);
    pen.restore();
  }
}

const labelSize = (space) => Math.max(9, Math.min(13, space * 0.8));

function labelStyle(pen, { special }, space, marked, ink) {
  const size = marked ? Math.max(11, labelSize(space)) : labelSize(space);
  pen.font = `${marked ? "bold " : special ? "italic " : ""}${size}px ${FONT}`;
  pen.fillStyle = marked ? ink.text : special ? ink.accent : ink.muted;
}

// Which tokens get a label where there is not room for all: the marked one, then special ones, then what fits between.
function labelled(tokens, space, marked) {
  const every = Math.max(1, Math.ceil((labelSize(space) + 1) / space)), taken = new Array(tokens.length).fill(false), chosen = [];
  const choose = (i) => {
    if (taken[i]) return;
    chosen.push(i);
    taken.fill(true, Math.max(0, i - every + 1), i + every);
  };
  if (marked >= 0) choose(marked);
  tokens.forEach((token, i) => token.special && choose(i));
  tokens.forEach((_, i) => choose(i));
  return chosen;
}

// The cell under a pointer event, as {row, column} of `at`s, or null.
function cellAt(canvas, event, map, { left, top, cell }) {
  const box = canvas.getBoundingClientRect();
  const row = map.rows[Math.floor((event.clientY - box.top - top) / cell)];
  const column = map.columns[Math.floor((event.clientX - box.left - left) / cell)];
  return row && column ? { row: row.at, column: column.at } : null;
}
