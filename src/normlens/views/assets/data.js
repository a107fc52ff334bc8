// The numbers of a figure: unpacked panel by panel, when they are shown. The format is described in payload.py.

const SQUARES = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);
const NUMBERS = { float32: Float32Array, root8: Uint8Array, linear16: Int16Array };

export async function inflate(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// source.chunk(k) promises the packed bytes of chunk k; source.exact(panel, axis, at) the exact numbers of a token.
export function openFigure(header, source) {
  const figure = { ...header, loaded: new Map(), lines: new Map() };
  figure.panels = header.panels.map((panel, index) => ({
    ...panel,
    index,
    name: panel.layer === null ? panel.kind : `L${panel.layer}`,
    rows: header.sides[panel.tgt].tokens.length,
    columns: header.sides[panel.src].tokens.length,
    maps: new Map(panel.maps.map((map) => [map.name, explained(map, header.measures[map.name])])),
  }));

  figure.load = (indexes) =>
    Promise.all(
      indexes.map((index) =>
        once(figure.loaded, index, async () => unpack(figure.panels[index], await inflate(await source.chunk(index)))),
      ),
    );

  // The exact numbers of a pinned token: those in the file, or from a server; null where there are none.
  figure.exactly = async (panel, axis, at) => {
    if (figure.exact) return null;
    return once(figure.lines, `${panel.index} ${axis} ${at}`, () => readExact(figure, source, panel, axis, at));
  };
  return figure;
}

// A map with what a reader is told of its measure. A matrix has queries and keys; any other is a strip: its columns are `across`.
function explained(map, measure) {
  const axes = map.axes.split(" ");
  return {
    ...measure,
    ...map,
    axes,
    tone: measure.role === "attention" ? "weight" : "norm",
    matrix: axes.includes("tgt") && axes.includes("src"),
    headed: axes[0] === "head",
    across: axes.at(-1),
  };
}

// What `make` promises under this key, made once; a promise that was not kept is forgotten, so that the next call tries anew.
function once(kept, key, make) {
  if (!kept.has(key))
    kept.set(
      key,
      make().catch((error) => {
        kept.delete(key);
        throw error;
      }),
    );
  return kept.get(key);
}

function unpack(panel, buffer) {
  for (const map of panel.maps.values()) {
    if (map.coding === "product") continue;
    const size = map.axes.reduce((total, axis) => total * lengthOf(panel, axis), 1);
    map.codes = new NUMBERS[map.coding](buffer, map.at, size);
  }
}

const lengthOf = (panel, axis) => ({ head: panel.heads.length, tgt: panel.rows, src: panel.columns })[axis];

async function readExact(figure, source, panel, axis, at) {
  let numbers,
    start = 0;
  const pin = figure.pins.findIndex(
    (one) => one.axis === axis && one.at === at && figure.groups[one.kind].includes(panel.index),
  );
  if (pin >= 0) {
    numbers = new Float32Array(await inflate(await source.chunk(figure.panels.length + pin)));
    for (const index of figure.groups[figure.pins[pin].kind]) {
      if (index === panel.index) break;
      start += exactSize(figure.panels[index], axis);
    }
  } else if (source.exact) {
    numbers = new Float32Array(await source.exact(panel.index, axis, at));
  } else return null;
  const length = axis === "tgt" ? panel.columns : panel.rows,
    lines = new Map();
  for (const map of crossed(panel)) {
    const count = (map.headed ? panel.heads.length : 1) * length;
    lines.set(map.name, numbers.subarray(start, (start += count)));
  }
  return lines;
}

const crossed = (panel) =>
  [...panel.maps.values()].filter((map) => map.matrix && map.coding !== "product");
const exactSize = (panel, axis) =>
  crossed(panel).reduce(
    (total, map) =>
      total + (map.headed ? panel.heads.length : 1) * (axis === "tgt" ? panel.columns : panel.rows),
    0,
  );

// How the codes of one head of a map become numbers: number = factor of its column · turn[code], or the code itself,
// without its sign where that is `absolute`.
export function decoder(panel, name, head) {
  const map = panel.maps.get(name),
    product = map.coding === "product",
    stored = product ? panel.maps.get(map.of[0]) : map,
    made = [...panel.maps.values()].find(({ of }) => of?.[0] === stored.name); // the product it is a factor of, if any
  const wide = lengthOf(panel, map.across),
    factors = new Float32Array(wide).fill(1),
    norms = made && panel.maps.get(made.of[1]).codes,
    start = head * wide;
  if (stored.coding !== "float32") {
    const unit = stored.coding === "linear16" ? 1 / 32767 : 1;
    factors.fill(stored.scales[head] * unit);
    if (made) {
      const largest = made.scales[head];
      for (let j = 0; j < wide; j++)
        if (norms[start + j] * stored.scales[head] > largest) factors[j] = (largest / norms[start + j]) * unit;
    }
  }
  if (product) for (let j = 0; j < wide; j++) factors[j] *= norms[start + j];
  return {
    codes: stored.codes,
    factors,
    turn: stored.coding === "root8" ? SQUARES : null,
    absolute: product && stored.signed,
  };
}

// Adds one head (or the only layer) of a map to `into`, times `share`.
export function addMap(panel, name, head, into, share) {
  const { codes, factors, turn, absolute } = decoder(panel, name, head),
    columns = factors.length,
    start = head * into.length,
    scaled = factors.map((factor) => factor * share);
  for (let i = 0; i < into.length; i += columns) {
    if (turn) for (let j = 0; j < columns; j++) into[i + j] += scaled[j] * turn[codes[start + i + j]];
    else if (absolute) for (let j = 0; j < columns; j++) into[i + j] += scaled[j] * Math.abs(codes[start + i + j]);
    else for (let j = 0; j < columns; j++) into[i + j] += scaled[j] * codes[start + i + j];
  }
}

// How far a rounded number of this map may be from the true one, the mean over heads.
export function bound(panel, name, heads) {
  const map = panel.maps.get(name),
    coding = map.coding === "product" ? panel.maps.get(map.of[0]).coding : map.coding;
  if (coding === "float32") return 0;
  const steps = coding === "root8" ? 255 : 65534;
  return mean((map.headed ? heads : [0]).map((h) => map.scales[h] / steps));
}

export const mean = (numbers) => numbers.reduce((total, number) => total + number, 0) / numbers.length;
