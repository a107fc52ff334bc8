// Pointing at a token of an answer shows the scores of the tokens before it; a click keeps them.

const texts = JSON.parse(document.getElementById("data").textContent);

function number(value) {
  const written = value === 0 ? "0" : Math.abs(value) >= 1e-3 && Math.abs(value) < 1e4 ? value.toPrecision(3) : value.toExponential(2);
  return (value > 0 ? "+" : "") + written.replace("-", "−");
}

function joined(scores, groups) {
  const sums = new Map();
  scores.forEach((score, place) => {
    if (groups[place] !== null) sums.set(groups[place], (sums.get(groups[place]) ?? 0) + score);
  });
  return scores.map((score, place) => (groups[place] === null ? score : sums.get(groups[place])));
}

function prepare(section) {
  const text = texts[section.dataset.number];
  const tokens = [...section.querySelectorAll(".token")];
  const told = section.querySelector(".told"), readout = section.querySelector(".readout");
  const [low, high] = section.querySelectorAll(".scale span");
  const cells = [...section.querySelectorAll(".numbers td + td")];
  const oneScale = section.querySelector(".one-scale"), unit = section.querySelector(".unit");
  const several = text.steps.length > 1;
  let kept = null;

  const scoresOf = (step) => (unit && unit.value !== "token" ? joined(step.scores, text[unit.value]) : step.scores);
  const topOf = (scores) => Math.max(1e-30, ...scores.map(Math.abs));
  const chosen = (step) => (step === null ? text.total : text.steps[step]);

  function show(step) {
    const one = chosen(step), scores = scoresOf(one);
    const top = oneScale?.checked && step !== null ? Math.max(...text.steps.map((each) => topOf(scoresOf(each)))) : topOf(scores);
    tokens.forEach((token, place) => {
      const seen = place < scores.length, score = seen ? scores[place] : 0;
      token.style.setProperty("--share", Math.abs(score) / top);
      token.classList.toggle("against", score < 0);
      token.classList.toggle("unseen", !seen);
      token.classList.toggle("asked", several && step !== null && Number(token.dataset.step ?? -1) === step);
      token.title = seen ? `${token.textContent}  ${number(score)}` : "";
      cells[place].textContent = seen ? number(score) : "–";
    });
    told.replaceChildren(...one.told.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
    low.textContent = text.signed ? number(-top) : "0";
    high.textContent = number(top);
  }

  function read(token) {
    const one = chosen(kept), place = Number(token.dataset.place), scores = scoresOf(one);
    if (place >= scores.length) return;
    const all = one.scores.reduce((sum, score) => sum + Math.abs(score), 0);
    const share = all ? `, ${((100 * Math.abs(scores[place])) / all).toPrecision(2)} % of all |scores|` : "";
    readout.textContent = `${token.textContent}: ${number(scores[place])}${share}, for ${one.target}`;
  }

  for (const token of tokens) {
    const step = token.dataset.step === undefined ? null : Number(token.dataset.step);
    const asks = several && step !== null;
    token.addEventListener("pointerenter", () => {
      if (asks && kept === null) {
        show(step);
        readout.textContent = text.steps[step].heading;
      } else read(token);
    });
    token.addEventListener("pointerleave", () => { if (asks && kept === null) show(null); });
    if (!asks) continue;
    token.addEventListener("focus", () => { if (kept === null) show(step); });
    token.addEventListener("blur", () => { if (kept === null) show(null); });
    token.addEventListener("click", () => {
      kept = kept === step ? null : step;
      show(kept);
      readout.textContent = kept === null ? "" : text.steps[step].heading;
    });
  }
  section.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && kept !== null) show((kept = null));
  });
  for (const box of [oneScale, unit]) box?.addEventListener("change", () => show(kept));
}

document.querySelectorAll("section.text").forEach(prepare);
