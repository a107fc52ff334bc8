// The report of a corpus as tabs beside the page of one text: a tab for each study. The report is shown as it was
// written, in a frame of which one section at a time is seen.

export function tabs(nav, text, corpus) {
  const frame = document.createElement("iframe");
  frame.title = "Report of a corpus";
  frame.src = "/report/";
  frame.addEventListener("load", () => fill(nav, text, corpus, frame));
  corpus.append(frame);
  nav.hidden = false;
  tab(nav, "One text", "Trace one text", () => choose(text, corpus));
  nav.firstChild.setAttribute("aria-current", "page");
}

function fill(nav, text, corpus, frame) {
  const report = frame.contentDocument;
  const sections = [...report.querySelectorAll("section[data-study]")];
  const rest = [...report.querySelectorAll("main > header, main > section:not([data-study])")];
  for (const link of report.querySelectorAll("main nav")) link.hidden = true; // the tabs are its contents
  new ResizeObserver(() => fit(frame)).observe(report.documentElement);
  const show = (shown) => {
    for (const part of [...sections, ...rest]) part.hidden = !shown.includes(part);
    choose(corpus, text);
    fit(frame);
  };
  tab(nav, "Summary", "What the studies of the corpus found", () => show(rest));
  for (const section of sections) {
    const name = section.dataset.study.replaceAll("_", " ");
    const title = section.querySelector("h2")?.textContent ?? name;
    tab(nav, name[0].toUpperCase() + name.slice(1), title, () => show([section]));
  }
}

function tab(nav, name, title, show) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: name, title });
  button.addEventListener("click", () => {
    for (const other of nav.children) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "page");
    show();
  });
  nav.append(button);
}

function choose(shown, hidden) {
  shown.hidden = false;
  hidden.hidden = true;
}

function fit(frame) {
  const page = frame.contentDocument?.querySelector("main");
  if (page) frame.style.height = `${Math.ceil(page.getBoundingClientRect().height) + 8}px`;
}
