// The fields of one run: a model, a text, and its second text, pair or target, as the model takes it.

const OTHER = {
  encoder: ["Second text (a pair; may be empty)", "Text"],
  decoder: ["Second text (a pair; may be empty)", "Text"],
  seq2seq: ["Target (may be empty: the model writes it)", "Source"],
};

export class Run {
  constructor(fieldset, models) {
    this.fieldset = fieldset;
    this.kinds = new Map(models.map(({ name, kind }) => [name, kind]));
    [this.model, this.text, this.other] = ["model", "text", "other"].map((name) =>
      fieldset.querySelector(`[name=${name}]`),
    );
    this.model.replaceChildren(...models.map(({ name }) => new Option(name, name)));
    this.model.addEventListener("change", () => this.label());
    this.label();
  }

  get kind() {
    return this.kinds.get(this.model.value);
  }

  label() {
    const [other, text] = OTHER[this.kind] ?? OTHER.encoder;
    this.fieldset.querySelector(".other span").textContent = other;
    this.fieldset.querySelector(".text span").textContent = text;
  }

  read() {
    const question = { model: this.model.value, text: this.text.value };
    if (this.other.value.trim()) question[this.kind === "seq2seq" ? "target" : "pair"] = this.other.value;
    return question;
  }

  fill({ model, text, pair, target }) {
    if (!this.kinds.has(model)) return false;
    this.model.value = model;
    this.text.value = text;
    this.other.value = target ?? pair ?? "";
    this.label();
    return true;
  }
}
