// The numbers of the figure: unpacked once, one map at a time. The format is described in payload.py.

const SQUARES = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);

function readFigure(json) {
  const text = atob(json.data), packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i); // many times faster than Uint8Array.from
  const bytes = inflate(packed, json.size), floats = new Float32Array(bytes.buffer, 0, json.floats);
  let float = 0, byte = 4 * json.floats;
  for (const panel of json.panels) {
    panel.rows = json.sides[panel.tgt].tokens.length;
    panel.columns = json.sides[panel.src].tokens.length;
    panel.scales = floats.subarray(float, (float += panel.heads + 1));
    panel.norms = floats.subarray(float, (float += panel.heads * panel.columns));
  }
  for (const panel of json.panels) {
    panel.codes = bytes.subarray(byte, (byte += panel.heads * panel.rows * panel.columns));
    panel.sumCodes = bytes.subarray(byte, (byte += panel.rows * panel.columns));
  }
  return json;
}

// α of one head, or its mean over heads when head is null; `times` multiplies each source column.
function weightsOf(panel, head, times) {
  const size = panel.rows * panel.columns, values = new Float32Array(size);
  const heads = head === null ? [...Array(panel.heads).keys()] : [head];
  for (const h of heads) {
    const scale = panel.scales[h] / heads.length, codes = panel.codes.subarray(h * size, (h + 1) * size);
    for (let i = 0; i < size; i++) {
      values[i] += scale * SQUARES[codes[i]] * (times ? panel.norms[h * panel.columns + (i % panel.columns)] : 1);
    }
  }
  return values;
}

function weightedNormsOf(panel, head) {
  return weightsOf(panel, head, true);
}

function summedNormsOf(panel) {
  return Float32Array.from(panel.sumCodes, (code) => panel.scales[panel.heads] * SQUARES[code]);
}

// ‖f(x)‖: one row per head, or the row of one head.
function transformedNormsOf(panel, head) {
  return head === null ? panel.norms : panel.norms.subarray(head * panel.columns, (head + 1) * panel.columns);
}

function meanTransformedNorm(panel, head, column) {
  if (head !== null) return panel.norms[head * panel.columns + column];
  let total = 0;
  for (let h = 0; h < panel.heads; h++) total += panel.norms[h * panel.columns + column];
  return total / panel.heads;
}

// The share of the total that each column holds, over the given rows.
function columnShares(values, rows, columns) {
  const shares = new Float32Array(columns);
  let total = 0;
  for (const row of rows) for (let j = 0; j < columns; j++) {
    shares[j] += values[row * columns + j];
    total += values[row * columns + j];
  }
  return total > 0 ? shares.map((share) => share / total) : shares;
}
