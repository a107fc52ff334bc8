// Native radio buttons dressed as chips: every choice in sight, arrow keys and screen readers for free.

function chips(form, name, legend, options, onPick) {
  const group = document.createElement("fieldset"), title = document.createElement("legend");
  title.textContent = legend;
  group.append(title);
  for (const { value, label, hint } of options) {
    const chip = document.createElement("label"), input = document.createElement("input"), text = document.createElement("span");
    Object.assign(input, { type: "radio", name, value: String(value) });
    input.setAttribute("aria-label", hint || `${legend} ${label}`);
    text.textContent = label;
    if (hint) chip.title = hint;
    input.addEventListener("change", () => onPick(value));
    chip.append(input, text);
    group.append(chip);
  }
  form.append(group);
  return (value) => {
    for (const input of group.querySelectorAll("input")) input.checked = input.value === String(value);
  };
}

function toggle(form, label, onFlip) {
  const chip = document.createElement("label"), input = document.createElement("input");
  chip.className = "toggle";
  input.type = "checkbox";
  input.addEventListener("change", () => onFlip(input.checked));
  chip.append(input, ` ${label}`);
  form.append(chip);
  return (checked) => { input.checked = checked; };
}
