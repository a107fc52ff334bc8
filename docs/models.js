/* The table of models: a search, a filter by result, and pages. Without JavaScript the whole table remains. */
"use strict";

(() => {
  const PER_PAGE = 25;
  const RESULT = 1; // the column of the result
  const frame = document.querySelector(".models");
  if (!frame) return;

  const rows = [...frame.querySelectorAll("tbody tr")].map((row) => ({
    row,
    text: row.textContent.toLowerCase(),
    result: row.cells[RESULT].textContent.trim(),
  }));
  const counts = new Map();
  for (const { result } of rows) counts.set(result, (counts.get(result) ?? 0) + 1);

  const made = (name, attributes = {}, ...children) => {
    const element = Object.assign(document.createElement(name), attributes);
    element.append(...children);
    return element;
  };
  const search = made("input", { type: "search", placeholder: "bert, gate, vision …", autocomplete: "off" });
  const filter = made("select", {}, made("option", { value: "" }, `all (${rows.length})`));
  for (const [result, count] of counts) filter.append(made("option", { value: result }, `${result} (${count})`));
  const back = made("button", { type: "button" }, "‹ previous");
  const on = made("button", { type: "button" }, "next ›");
  const range = made("output");
  const controls = made(
    "form",
    { className: "models-controls" },
    made("label", {}, "Find a model ", search),
    made("label", {}, "Result ", filter),
    made("span", {}, back, " ", range, " ", on),
  );
  frame.before(controls);

  let first = 0;
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = rows.filter(
      ({ text, result }) => (!filter.value || result === filter.value) && words.every((word) => text.includes(word)),
    );
    const shown = new Set(matches.slice(first, first + PER_PAGE));
    for (const entry of rows) entry.row.hidden = !shown.has(entry);
    const last = first + shown.size;
    range.textContent = matches.length ? `${first + 1} to ${last} of ${matches.length}` : "no model type matches";
    back.disabled = first === 0;
    on.disabled = last >= matches.length;
  };
  const turn = (by) => {
    first = Math.max(0, first + by);
    update();
  };
  const restart = () => turn(-first);

  search.addEventListener("input", restart);
  filter.addEventListener("change", restart);
  back.addEventListener("click", () => turn(-PER_PAGE));
  on.addEventListener("click", () => turn(PER_PAGE));
  controls.addEventListener("submit", (event) => event.preventDefault());
  update();
})();
