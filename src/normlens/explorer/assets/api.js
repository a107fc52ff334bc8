// Talking to the explorer. Every failure becomes a Problem: a sentence, and what to do.

export class Problem extends Error {
  constructor(sentence, advice, status = 0) {
    super(sentence);
    this.advice = advice;
    this.status = status;
  }
}

const CLIENT = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
  byte.toString(16).padStart(2, "0"),
).join("");

export async function call(path, { method = "GET", body, type, keepalive, signal } = {}) {
  const headers = { "X-Client": CLIENT };
  if (type) headers["Content-Type"] = type;
  let response;
  try {
    response = await fetch(path, { method, body, headers, keepalive, signal });
  } catch {
    if (signal?.aborted) throw new Problem("The request was cancelled.", "Send it again.", -1);
    throw new Problem("The explorer does not answer.", "See whether it still runs in its terminal, then try again.");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Problem(
    told.error ?? `The explorer answered ${response.status}.`,
    told.do ?? "Try again.",
    response.status,
  );
}

export const getJson = async (path) => (await call(path)).json();
export const postJson = async (path, value, signal) =>
  (await call(path, { method: "POST", body: JSON.stringify(value), type: "application/json", signal })).json();

// What the view asks for while somebody looks at a result.
export const source = (id) => ({
  chunk: async (number) => new Uint8Array(await (await call(`/api/results/${id}/chunks/${number}`)).arrayBuffer()),
  exact: async (panel, side, at) => (await call(`/api/results/${id}/exact/${panel}/${side}/${at}`)).arrayBuffer(),
});
