// The page: what is chosen, what follows from it, and who listens. One state, one render.

const KINDS = { self: "self-attention", encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
const RIGHT = {
  weighted: { label: "‖αf(x)‖", hint: "norm of the weighted vector: of one head, or the mean over heads" },
  summed: { label: "‖Σₕ αf(x)‖", hint: "norm of the sum over all heads: what the block as a whole moves" },
  transformed: { label: "‖f(x)‖", hint: "norm of the vector before weighting, one row per head" },
};
const HINT = "Point at a cell for its numbers; click to pin its row. On the maps: ← → head, ↑ ↓ layer, Shift+arrows move the cell, Esc lets go.";
const find = (selector) => document.querySelector(selector);
const digits = (value) => (value === 0 ? "0" : value < 0.001 ? value.toExponential(1) : value.toPrecision(3));
const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
const quoted = (token) => `“\u2068${token}\u2069”`; // isolated, so a right-to-left token keeps to itself

function start() {
  const figure = readFigure(JSON.parse(find("#data").textContent)), kinds = [...new Set(figure.panels.map(({ kind }) => kind))];
  const form = find("#controls"), maps = find("#maps"), [leftBox, rightBox] = maps.querySelectorAll("figure");
  const anySpecial = figure.sides.some(({ special }) => special.some(Boolean));
  const opening = figure.panels.map((_, i) => i).filter((i) => figure.panels[i].kind === kinds[0]);
  const state = { panel: opening[(opening.length - 1) >> 1], head: null, measure: "summed", hide: false, pin: null, row: null, column: null };
  let sync = [], shown = null;

  const panel = () => figure.panels[state.panel];
  const layers = () => figure.panels.map((_, i) => i).filter((i) => figure.panels[i].kind === panel().kind);

  // A change of head to or from "all" brings its own right picture: the sum for all, ‖αf(x)‖ for one.
  function change(patch) {
    const before = panel();
    if ("head" in patch && (patch.head === null) !== (state.head === null) && state.measure !== "transformed") {
      state.measure = patch.head === null ? "summed" : "weighted";
    }
    Object.assign(state, patch);
    if (panel().tgt !== before.tgt || panel().src !== before.src) Object.assign(state, { pin: null, row: null, column: null });
    if (state.head !== null && state.head >= panel().heads) state.head = panel().heads - 1;
    const focused = form.contains(document.activeElement) ? document.activeElement.name : null;
    if (panel().kind !== before.kind || panel().heads !== before.heads) buildControls();
    render();
    if (focused) form.querySelector(`input[name="${focused}"]:checked`)?.focus();
  }

  function buildControls() {
    form.replaceChildren();
    sync = [];
    if (kinds.length > 1) {
      const options = kinds.map((kind) => ({ value: kind, label: KINDS[kind] || kind }));
      const set = chips(form, "kind", "Attention", options, (kind) => change({ panel: figure.panels.findIndex((p) => p.kind === kind) }));
      sync.push(() => set(panel().kind));
    }
    const blocks = layers().map((i) => ({ value: i, label: figure.panels[i].name }));
    const setLayer = chips(form, "layer", "Layer", blocks, (i) => change({ panel: i }));
    const heads = [{ value: null, label: "all heads" }, ...Array.from({ length: panel().heads }, (_, h) => ({ value: h, label: `H${h}` }))];
    const setHead = chips(form, "head", "Head", heads, (head) => change({ head }));
    const measures = Object.entries(RIGHT).map(([value, { label, hint }]) => ({ value, label, hint }));
    const setMeasure = chips(form, "measure", "Right map", measures, (measure) => change({ measure }));
    sync.push(() => { setLayer(state.panel); setHead(state.head); setMeasure(state.measure); });
    if (anySpecial) {
      const setHide = toggle(form.lastElementChild, "hide special tokens", (hide) => change({ hide }));
      sync.push(() => setHide(state.hide));
    }
  }

  // Tokens of a side that are in sight; hiding never leaves an empty picture.
  function axis(index) {
    const { tokens, special } = figure.sides[index];
    const all = tokens.map((label, at) => ({ at, label, special: special[at] })), rest = all.filter((token) => !token.special);
    return state.hide && rest.length ? rest : all;
  }

  // What the state means: two maps with their titles, and the shares.
  function compute() {
    const block = panel(), { head, measure } = state, rows = axis(block.tgt), columns = axis(block.src), stride = block.columns;
    const ramps = RAMPS[document.documentElement.dataset.theme], heads = `mean of ${block.heads} heads`;
    const weights = weightsOf(block, head), one = head === null ? null : `${block.name}H${head}`;
    const moved = measure === "summed" ? summedNormsOf(block) : weightedNormsOf(block, head);
    const headRows = (head === null ? [...Array(block.heads).keys()] : [head]).map((h, at) => ({ at, label: `H${h}`, special: false }));
    const strip = measure === "transformed";
    const titles = { weighted: `${one || `${block.name}, ${heads}`}`, summed: `${block.name}, all heads summed`, transformed: one || `${block.name}, each head` };
    const map = (values, lines, stops, name, where) => {
      let top = 0;
      for (const row of lines) for (const column of columns) top = Math.max(top, values[row.at * stride + column.at]);
      return { values, stride, rows: lines, columns, top, stops, ramp: pixels(stops), name, where };
    };
    const counted = state.pin === null ? [...Array(block.rows).keys()] : [state.pin];
    return {
      block, columns, strip, weights, moved,
      left: map(weights, rows, ramps.weight, "α", one || `${block.name}, ${heads}`),
      right: map(strip ? transformedNormsOf(block, head) : moved, strip ? headRows : rows, ramps.norm, RIGHT[measure].label, titles[measure]),
      weightShare: columnShares(weights, counted, stride),
      normShare: columnShares(moved, counted, stride),
    };
  }

  function render() {
    for (const set of sync) set();
    shown = compute();
    for (const [box, map] of [[leftBox, shown.left], [rightBox, shown.right]]) {
      const caption = box.querySelector("figcaption"), name = document.createElement("b");
      name.textContent = map.name;
      caption.replaceChildren(name, ` ${map.where}`);
      const scale = box.querySelector(".scale"), bar = document.createElement("i"), note = document.createElement("small");
      bar.style.background = `linear-gradient(to right, ${map.stops.join(",")})`;
      note.textContent = "own scale, up to the largest cell shown";
      scale.replaceChildren("0", bar, digits(map.top), note);
      box.querySelector("canvas").setAttribute("aria-label", `Heat map of ${map.name}, ${map.where}: ${map.rows.length} rows by ${map.columns.length} columns, from 0 to ${digits(map.top)}.`);
    }
    find("#finding").textContent = finding();
    find("footer").replaceChildren(...footnotes());
    draw();
  }

  // Only what follows the cursor: cheap enough for every move of the pointer.
  function draw() {
    const css = getComputedStyle(document.documentElement), ink = {};
    for (const name of ["ground", "text", "muted", "line", "accent", "weight", "norm"]) ink[name] = css.getPropertyValue(`--${name}`).trim();
    const labels = (list) => list.map(({ label }) => label);
    shown.layout = layoutMaps(leftBox.clientWidth, labels(shown.left.rows), labels(shown.columns));
    drawMap(leftBox.querySelector("canvas"), shown.left, shown.layout, state, ink);
    const marks = shown.strip ? { row: null, column: state.column, pin: null } : state;
    drawMap(rightBox.querySelector("canvas"), shown.right, shown.layout, marks, ink);
    const canvas = find("#shares canvas");
    shown.bars = drawBars(canvas, find("#shares").clientWidth, shown.columns, shown.weightShare, shown.normShare, state.column, ink);
    canvas.setAttribute("aria-label", `Bars per token: ${finding()}`);
    find("#shares .legend").replaceChildren(...legend());
    find("#readout").replaceChildren(...readout());
  }

  const styled = (className, text) => Object.assign(document.createElement("b"), { className, textContent: text });

  function legend() {
    const moved = state.measure === "summed" ? RIGHT.summed.label : RIGHT.weighted.label;
    const scope = state.pin === null ? "over all rows" : `in the row of ${quoted(figure.sides[panel().tgt].tokens[state.pin])}`;
    return [styled("weight", "■ share of the weight α"), " ", styled("norm", `■ share of ${moved}`), ` received ${scope}`];
  }

  // The sentence above the bars: special tokens if there are any, else the token whose two shares differ most.
  function finding() {
    const { tokens, special } = figure.sides[shown.block.src], sum = (shares) => shares.reduce((total, share, j) => total + (chosen.has(j) ? share : 0), 0);
    let chosen = new Set([...tokens.keys()].filter((j) => special[j]));
    if (!chosen.size) chosen = new Set([[...tokens.keys()].reduce((best, j) => (gap(j) > gap(best) ? j : best), 0)]);
    const names = [...new Set([...chosen].map((j) => tokens[j]))].join(" ");
    return `${names}: ${percent(sum(shown.weightShare))} of the weight, ${percent(sum(shown.normShare))} of what is moved`;
  }
  const gap = (j) => Math.abs(shown.weightShare[j] - shown.normShare[j]);

  function readout() {
    const { block } = shown, row = state.row ?? state.pin, { column, head } = state, one = head !== null;
    if (column === null) {
      return row === null ? [HINT] : [`${quoted(figure.sides[block.tgt].tokens[row])} is pinned. Point at a column for its numbers.`];
    }
    const source = figure.sides[block.src].tokens[column], size = digits(meanTransformedNorm(block, head, column));
    const factor = `${one ? "" : "mean "}‖f(x)‖ ${size}`;
    if (row === null) {
      return [`${quoted(source)} receives `, styled("weight", `${percent(shown.weightShare[column])} of the weight`), " and ", styled("norm", `${percent(shown.normShare[column])} of what is moved`), ` · ${factor}`];
    }
    const at = row * block.columns + column, name = state.measure === "summed" ? RIGHT.summed.label : `${one ? "" : "mean "}${RIGHT.weighted.label}`;
    const exact = one && state.measure !== "summed";
    return [
      `${quoted(figure.sides[block.tgt].tokens[row])} looks at ${quoted(source)}  `,
      styled("weight", `${one ? "" : "mean "}α ${digits(shown.weights[at])}`), exact ? ` × ${factor} = ` : ` · ${factor} · `,
      styled("norm", `${name} ${digits(shown.moved[at])}`),
    ];
  }

  function footnotes() {
    const line = (text) => Object.assign(document.createElement("p"), { textContent: text });
    const sides = (index) => (figure.sides.length > 1 ? ` (${figure.sides[index].name})` : "");
    const worst = figure.panels.reduce((most, { error }) => Math.max(most, error), 0);
    const notes = [
      `Rows${sides(panel().tgt)} look, columns${sides(panel().src)} are looked at. The parts rebuild ${panel().name} to ${panel().error.toExponential(1)} (relative; worst of all blocks ${worst.toExponential(1)}).`,
      "Weights and summed norms are stored in 8 bits: each is within 1/255 of the largest in its head or block. ‖f(x)‖ is stored in 32 bits, ‖αf(x)‖ is their product.",
    ];
    if (state.hide) notes.unshift("Special tokens are hidden, not removed: the remaining numbers and shares are unchanged (rows no longer add up to 1); only the colours are rescaled.");
    return [...notes.map(line), Object.assign(line(figure.signature), { className: "signature" })];
  }

  function listen() {
    const point = (where) => {
      const next = where || { row: null, column: null };
      if (next.row === state.row && next.column === state.column) return;
      Object.assign(state, { row: next.row, column: next.column });
      draw();
    };
    for (const [box, side] of [[leftBox, "left"], [rightBox, "right"]]) {
      const canvas = box.querySelector("canvas"), strip = () => side === "right" && shown.strip;
      const hit = (event) => {
        const where = cellAt(canvas, event, shown[side], shown.layout);
        return where && strip() ? { row: null, column: where.column } : where;
      };
      canvas.addEventListener("pointermove", (event) => point(hit(event)));
      canvas.addEventListener("pointerleave", () => point(null));
      canvas.addEventListener("click", (event) => {
        const where = hit(event);
        if (where && where.row !== null) change({ pin: state.pin === where.row ? null : where.row });
      });
    }
    const bars = find("#shares canvas");
    bars.addEventListener("pointermove", (event) => point({ row: null, column: barAt(bars, event, shown.bars) }));
    bars.addEventListener("pointerleave", () => point(null));
    maps.addEventListener("keydown", (event) => key(event));
    let width = find("#view").clientWidth;
    new ResizeObserver(() => {
      if (find("#view").clientWidth && width !== (width = find("#view").clientWidth)) draw();
      fitFrame();
    }).observe(find("#view"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { paintTheme(); render(); });
  }

  function key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step && event.shiftKey) moveCell(...step);
    else if (step && step[1]) {
      const heads = panel().heads + 1, place = state.head === null ? 0 : state.head + 1, next = (place + step[1] + heads) % heads;
      change({ head: next === 0 ? null : next - 1 });
    } else if (step) {
      const choices = layers(), place = choices.indexOf(state.panel) + step[0];
      if (place >= 0 && place < choices.length) change({ panel: choices[place] });
    } else if (event.key === "Enter" && state.row !== null) change({ pin: state.pin === state.row ? null : state.row });
    else if (event.key === "Escape") change({ pin: null, row: null, column: null });
    else return;
    event.preventDefault();
  }

  function moveCell(down, across) {
    const move = (axisTokens, at, by) => {
      const place = axisTokens.findIndex((token) => token.at === at);
      return axisTokens[Math.max(0, Math.min(axisTokens.length - 1, place < 0 ? 0 : place + by))].at;
    };
    state.row = move(shown.left.rows, state.row ?? state.pin, down);
    state.column = move(shown.columns, state.column, across);
    draw();
  }

  buildControls();
  find("#view").hidden = false;
  render();
  listen();
  find("#fallback").remove();
  fitFrame();
}

function paintTheme() {
  document.documentElement.dataset.theme = themeNow();
}

// In a notebook the frame is made as tall as its content, where the browser lets us.
function fitFrame() {
  try {
    const height = find("#view").getBoundingClientRect().height; // 0 while the notebook hides the output
    if (window.frameElement && height) window.frameElement.style.height = `${Math.ceil(height) + 4}px`;
  } catch { /* another origin keeps its own height and scrolls */ }
}

paintTheme();
try {
  start();
} catch (error) {
  find("#view").hidden = true;
  find("#fallback").prepend(`The interactive view could not start in this browser (${error.message}). The same numbers as text:\n\n`);
  throw error;
}
