// Native radio buttons and check boxes dressed as chips: every choice in sight, keys and screen readers for free.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// options: [{value, label, hint}]. One of them is chosen, or any number with `several`; onPick gets the value, or all.
export function chips(form, name, legend, options, { several = false, chosen, onPick }) {
  const group = element("fieldset", { "data-name": name }, element("legend", {}, legend));
  for (const { value, label, hint, disabled } of options) {
    const input = element("input", {
      type: several ? "checkbox" : "radio",
      name,
      value: String(value),
      "aria-label": hint || `${legend} ${label}`,
    });
    input.checked = chosen.map(String).includes(String(value));
    input.disabled = Boolean(disabled);
    input.addEventListener("change", () =>
      onPick(
        several ? options.filter((_, i) => group.querySelectorAll("input")[i].checked).map((one) => one.value) : value,
      ),
    );
    group.append(element("label", hint ? { title: hint } : {}, input, element("span", {}, label)));
  }
  form.append(group);
  return group;
}

export function toggle(form, name, label, checked, onFlip, hint) {
  const input = element("input", { type: "checkbox", name });
  input.checked = checked;
  input.addEventListener("change", () => onFlip(input.checked));
  form.append(element("label", { class: "toggle", ...(hint ? { title: hint } : {}) }, input, ` ${label}`));
}

export function menu(form, name, label, groups, chosen, onPick) {
  const select = element("select", { name });
  for (const [title, options] of groups) {
    const into = title ? select.appendChild(element("optgroup", { label: title })) : select;
    for (const [value, text] of options) into.append(element("option", { value }, text));
  }
  select.value = chosen;
  select.addEventListener("change", () => onPick(select.value));
  form.append(element("label", { class: "menu" }, `${label} `, select));
}

export function action(form, name, label, hint, onPress) {
  const button = element("button", { type: "button", name, title: hint }, label);
  button.addEventListener("click", onPress);
  form.append(button);
}
