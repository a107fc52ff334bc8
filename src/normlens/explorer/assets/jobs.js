// One run at a time: asked for, followed, cancelled.

import { Problem, call, getJson, postJson } from "./api.js";

const STAGES = {
  starting: () => "Starting",
  loading: () => "Loading the model",
  writing: ({ done, of }) => `The model writes: ${done} tokens of at most ${of}`,
  layers: ({ done, of }) => `Attention block ${done} of ${of}`,
  opening: () => "Opening the file",
  packing: () => "Packing the numbers",
};

let current = null; // id of the job that may be cancelled
let sending = null; // the request for it, while it is under way

export const ask = (question, tell) => follow((signal) => postJson("/api/jobs", question, signal), tell);

export const open = (file, tell) =>
  follow(
    async (signal) =>
      (await call("/api/open", { method: "POST", body: file, type: "application/octet-stream", signal })).json(),
    tell,
  );

export async function cancel() {
  sending?.abort();
  if (current) await call(`/api/jobs/${current}`, { method: "DELETE" });
}

export function abandon() {
  if (current) call(`/api/jobs/${current}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

async function follow(start, tell) {
  sending = new AbortController();
  let job;
  try {
    job = await start(sending.signal);
  } finally {
    sending = null;
  }
  current = job.id;
  try {
    while (job.state === "waiting" || job.state === "running") {
      tell(words(job), job.stage === "layers" || job.stage === "writing" ? job : null);
      job = await getJson(`/api/jobs/${job.id}?after=${job.version}`);
    }
  } finally {
    current = null;
  }
  if (job.state !== "done") throw new Problem(job, job.state === "cancelled" ? -1 : 422);
  return { id: job.id, ...job.result };
}

function words(job) {
  if (job.state === "waiting")
    return job.position > 1 ? `Waiting: number ${job.position} in the queue` : "Waiting: next in the queue";
  return STAGES[job.stage]?.(job) ?? "Running";
}
