// The page of one text: a form, a run, a view. The link in the address bar restores what is shown.

import { Problem, getJson, postJson, source } from "./api.js";
import { themeNow } from "./color.js";
import { tabs } from "./corpus.js";
import { Run } from "./form.js";
import * as jobs from "./jobs.js";
import * as link from "./link.js";
import { showProfile } from "./profile.js";
import { mount } from "./view.js";

const $ = (id) => document.getElementById(id);
const state = { id: null, asked: null, look: null, busy: false, view: null, profiles: null };
const LABELS = [["what", ""], ["got", "Got: "], ["cause", "Usual cause: "], ["do", "Do: "]]; // as in the terminal
let first, second;

function say(words, part = null) {
  $("status").textContent = words;
  $("progress").hidden = !state.busy;
  if (part) Object.assign($("progress"), { max: part.of || 1, value: part.done });
  else $("progress").removeAttribute("value");
}

function complain(error) {
  $("view").classList.toggle("before", $("view").childElementCount > 0);
  if (error.status === -1) return say("Cancelled.");
  const known = error instanceof Problem;
  if (!known) console.error(error);
  const parts = known ? error.parts : { what: "The page failed.", do: "reload it, then try again." };
  say("");
  $("problem").hidden = false;
  $("problem").textContent = LABELS.filter(([name]) => parts[name])
    .map(([name, label]) => label + parts[name])
    .join("\n");
}

// Runs one piece of work, with the buttons in order before, during and after it.
async function busy(work) {
  if (state.busy) return;
  state.busy = true;
  $("show").disabled = $("open").disabled = true;
  $("problem").hidden = $("linked").hidden = true;
  $("cancel").hidden = false;
  try {
    await work();
  } catch (error) {
    state.busy = false;
    complain(error);
  } finally {
    state.busy = false;
    $("progress").hidden = $("cancel").hidden = true;
    $("show").disabled = $("open").disabled = false;
  }
}

const show = (look = null) =>
  busy(async () => {
    const asked = { first: first.read(), second: $("compare").open ? second.read() : null };
    let result = await jobs.ask(asked.first, (words, part) => say(asked.second ? `First run. ${words}` : words, part));
    if (asked.second) {
      result = await jobs.ask({ ...asked.second, base: result.id }, (words, part) => say(`Second run. ${words}`, part));
    }
    await see(result, asked, look);
  });

const openFile = (file) =>
  busy(async () => {
    say("Sending the file");
    await see(await jobs.open(file, say), null, null);
  });

async function see(result, asked, look) {
  const header = await getJson(`/api/results/${result.id}/header`);
  state.view?.close();
  Object.assign(state, { id: result.id, asked, look: null, view: null });
  const options = {
    ...source(result.id),
    onLook: (now) => {
      state.look = now;
      remember();
      showProfile($("profile"), header, state.view, state.profiles);
    },
  };
  const root = document.createElement("div");
  $("view").replaceChildren(root);
  $("view").classList.remove("before");
  try {
    state.view = await mount(root, look ? { ...header, look: { ...header.look, ...look } } : header, options);
    state.look = look;
  } catch (error) {
    if (!look || error instanceof Problem) throw error;
    root.replaceChildren(); // a link made by another version: its look is left out
    state.view = await mount(root, header, options);
  }
  remember();
  showProfile($("profile"), header, state.view, state.profiles);
  $("copy").disabled = !asked;
  $("trace").href = `/api/results/${result.id}/trace.safetensors`;
  $("trace").hidden = result.difference;
  $("page").hidden = false;
  say(`Shown: ${header.title}`);
}

// The address bar always holds the link that restores what is seen, and the page to download opens with it.
function remember() {
  const hash = state.asked ? link.write({ ...state.asked, look: state.look }) : "";
  history.replaceState(null, "", location.pathname + hash);
  $("page").href = `/api/results/${state.id}/view.html${state.look ? `?look=${link.pack(state.look)}` : ""}`;
}

async function copy() {
  const field = $("linked").querySelector("input");
  field.value = location.href;
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied.");
  } catch {
    $("linked").hidden = false; // browsers copy for secure pages only
    field.select();
    say("Copy the link below.");
  }
}

function restore() {
  const found = link.read(location.hash);
  if (!found && link.holds(location.hash))
    complain(new Problem({ what: "The link is damaged.", do: "copy it again, whole; or type the text and press Show." }));
  if (!found) return;
  if (!first.fill(found.first) || (found.second && !second.fill(found.second))) {
    const what = "The link names a model that this explorer does not run.";
    return complain(new Problem({ what, do: "choose another model, then press Show." }));
  }
  $("compare").open = !!found.second;
  $("second").disabled = !found.second;
  show(found.look);
}

function listen() {
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  $("ask").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      $("ask").requestSubmit();
    }
  });
  $("compare").addEventListener("toggle", () => {
    $("second").disabled = !$("compare").open;
    if ($("compare").open && !second.text.value) second.fill(first.read());
  });
  $("cancel").addEventListener("click", () => jobs.cancel().catch(complain));
  $("copy").addEventListener("click", copy);
  $("open").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    if ($("file").files.length) openFile($("file").files[0]);
    $("file").value = "";
  });
  addEventListener("unhandledrejection", (event) => {
    if (!(event.reason instanceof Problem)) return; // what a view could not fetch, such as a result that is gone
    event.preventDefault();
    complain(event.reason);
  });
  addEventListener("pagehide", jobs.abandon);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  });
  $("show").disabled = $("open").disabled = false;
}

// What works also while the page has no models to offer: a link with the token, pasted into it, makes it begin again.
function listenFirst() {
  addEventListener("hashchange", () => {
    if (link.token(location.hash)) location.reload();
    else if (first) restore();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("view").focus();
  });
}

async function begin() {
  listenFirst();
  document.documentElement.dataset.theme = themeNow();
  const token = link.token(location.hash);
  if (token) {
    history.replaceState(null, "", location.pathname);
    await postJson("/api/session", { token });
  }
  const about = await getJson("/api/models");
  [first, second] = ["first", "second"].map((id) => new Run($(id), about.models));
  listen();
  if (about.heads) state.profiles = await getJson("/report/heads.json").catch(() => null);
  if (about.report) tabs($("pages"), document.querySelector("main"), $("corpus"));
  say(`A text may have ${about.limits.tokens} tokens.`);
  restore();
}

begin().catch(complain);
