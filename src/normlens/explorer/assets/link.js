// The state of the page as a link. It is behind #, which browsers do not send: no server log has the text.

export const write = (state) => `#run=${pack(state)}`;

// Plain data in letters that an address may hold.
export function pack(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export const holds = (hash) => new URLSearchParams(hash.slice(1)).has("run");

// The state in a link, null without one; whatever is not as written above is left out.
export function read(hash) {
  const packed = new URLSearchParams(hash.slice(1)).get("run");
  if (!packed) return null;
  try {
    const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const state = JSON.parse(new TextDecoder().decode(Uint8Array.from(letters, (letter) => letter.charCodeAt(0))));
    const first = question(state.first);
    if (!first) return null;
    const look = state.look && typeof state.look === "object" ? state.look : null;
    return { first, second: question(state.second), look };
  } catch {
    return null;
  }
}

export const token = (hash) => new URLSearchParams(hash.slice(1)).get("token");

function question(given) {
  if (!given || typeof given.model !== "string" || typeof given.text !== "string") return null;
  const kept = { model: given.model, text: given.text };
  for (const name of ["pair", "target"]) if (typeof given[name] === "string") kept[name] = given[name];
  return kept;
}
