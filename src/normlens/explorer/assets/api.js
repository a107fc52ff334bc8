// Requests to the explorer. Every failure becomes a Problem with the parts of an error: what, got, cause, do.

export class Problem extends Error {
  constructor(parts, status = 0) {
    super(parts.what);
    this.parts = parts;
    this.status = status;
  }
}

export async function call(path, { method = "GET", body, type, keepalive, signal } = {}) {
  const headers = type ? { "Content-Type": type } : {};
  let response;
  try {
    response = await fetch(path, { method, body, headers, keepalive, signal });
  } catch {
    if (signal?.aborted) throw new Problem({ what: "The request was cancelled.", do: "send it again." }, -1);
    throw new Problem({ what: "The explorer does not answer.", do: "check its terminal, then try again." });
  }
  if (response.ok) return response;
  const unknown = { what: `The explorer answered ${response.status}.`, do: "try again." };
  throw new Problem({ ...unknown, ...(await response.json().catch(() => ({}))) }, response.status);
}

export const getJson = async (path) => (await call(path)).json();
export const postJson = async (path, value, signal) =>
  (await call(path, { method: "POST", body: JSON.stringify(value), type: "application/json", signal })).json();

// What the view fetches of a result.
export const source = (id) => ({
  chunk: async (number) => new Uint8Array(await (await call(`/api/results/${id}/chunks/${number}`)).arrayBuffer()),
  exact: async (panel, side, at) => (await call(`/api/results/${id}/exact/${panel}/${side}/${at}`)).arrayBuffer(),
});
