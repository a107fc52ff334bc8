// The profile of the head in the view, as the report of a corpus has it (heads.json): its role, then every column.

import { element } from "./controls.js";

const HOW = "normlens heads --corpus texts.txt --out heads, then normlens serve --corpus heads";

// A model by the last part of its name and its revision: "models/mine@1a2b" and "/home/me/models/mine@1a2b" are one.
const identity = (model) => model.split("/").at(-1);
const modelOf = (header) => identity(header.signature.split(" | ")[0].replace(/^model:/, ""));

// view: {figure, look} of what is shown; profiles: the report's, or null.
export function showProfile(root, header, { figure, look }, profiles) {
  const group = figure.groups[look.kind].map((index) => figure.panels[index]);
  const isOneHead = look.layers.length === 1 && look.heads.length === 1 && !header.difference;
  root.hidden = !isOneHead || group[0].layer === null;
  if (root.hidden) return;
  const name = `L${look.layers[0]}H${look.heads[0]}`,
    title = element("h2", {}, `The profile of ${name}`);
  if (!profiles || identity(profiles.model) !== modelOf(header)) {
    const why = profiles ? `The report is one of ${profiles.model}.` : "There is no report of its heads.";
    return root.replaceChildren(title, element("p", { class: "hint" }, `${why} To see it here: `, element("code", {}, HOW)));
  }
  const kind = profiles.kinds[group[0].kind],
    head = kind?.heads[name];
  if (!head) return root.replaceChildren(title, element("p", { class: "hint" }, "The report says nothing of this head."));
  const lists = new Map();
  kind.columns.forEach(([study, heading], place) => {
    if (!study) return; // the role is in the sentence
    if (!lists.has(study)) lists.set(study, element("dl", {}));
    lists.get(study).append(element("div", {}, element("dt", {}, heading), element("dd", {}, head.values[place])));
  });
  root.replaceChildren(
    title,
    element("p", {}, `${head.says}.`),
    element("p", { class: "hint" }, `Over ${profiles.corpus}; the tab Heads explains it.`),
    element("div", { class: "columns" }, ...[...lists].map(([study, list]) => element("div", {}, element("h3", {}, study), list))),
  );
}
