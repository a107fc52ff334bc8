// Tables sort by a click on a heading, a second click turns the order; long ones can be searched. Works on any root, so
// that the explorer uses it too.
function liveTables(root) {
  for (const table of root.querySelectorAll("figure.table table")) {
    const body = table.tBodies[0];
    if (!body || body.querySelector("tr.group") || table.dataset.live) continue;
    table.dataset.live = "yes";
    const rows = [...body.rows],
      headings = [...table.tHead.rows].at(-1).cells; // groups of columns, if any, are above
    [...headings].forEach((heading, column) => {
      if (rows.length < 3) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "descending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "ascending" : "descending");
        const sign = down ? 1 : -1;
        const keyed = rows.map((row, place) => [sortKey(row.cells[column].textContent), place, row]);
        keyed.sort(([a, i], [b, j]) => {
          if ((a === null) !== (b === null)) return a === null ? 1 : -1; // what is not defined stays last
          if (a === null) return i - j;
          const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
          return sign * order || i - j;
        });
        body.append(...keyed.map(([, , row]) => row));
      });
    });
    if (rows.length > 14) {
      const search = document.createElement("input");
      search.type = "search";
      search.placeholder = "Search this table";
      search.setAttribute("aria-label", "Search this table");
      search.addEventListener("input", () => {
        const wanted = search.value.toLowerCase();
        for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
      table.closest(".scroll").before(search);
    }
  }
}

// "1,234", "35 %", "<0.1 %", "−0.69", "3.20×10⁻⁷" as numbers; "–" as nothing; everything else as text.
function sortKey(text) {
  const plain = text.trim();
  if (plain === "–" || plain === "") return null;
  const written = plain.replace(/\u00a0|\s/g, "").replace(/−/g, "-").replace(/^<(.*)$/, "$1").replace(/%$/, "");
  const raised = written.match(/^(-?[\d.]+)×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/);
  if (raised) return Number(`${raised[1]}e${[...raised[2]].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).map((d) => (d ? d - 1 : "-")).join("")}`);
  const number = Number(written.replace(/(\d),(?=\d{3})/g, "$1"));
  return Number.isNaN(number) ? plain : number;
}

liveTables(document);
