// The endpoint: its stream of snapshots, its other answers, and its token.

import { byId, write } from "./nodes.js";
import { plain } from "./text.js";

const SILENT_MS = 8000;

export class Refused extends Error {
  constructor(status, words) {
    super(words || `the endpoint answers with status ${status}`);
    this.status = status;
  }
}
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks the endpoint, with the token if it wants one. Throws on any answer but 200. */
export async function ask(path, signal) {
  for (;;) {
    const token = sessionStorage.getItem("warptape.token");
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(path, { headers, signal, cache: "no-store" });
    if (response.ok) return response;
    const words = plain((await response.text()).trim().split("\n")[0]).slice(0, 300);
    if (response.status !== 401) throw new Refused(response.status, words);
    await newToken(token);
  }
}

let asking = null;
export const isAsking = () => asking !== null;
/** Asks the reader for a token, unless another one was given since `refused` was sent. */
function newToken(refused) {
  if (sessionStorage.getItem("warptape.token") !== refused) return Promise.resolve();
  asking ??= new Promise((resolve) => {
    const dialog = byId("token");
    if (refused !== null)
      write(byId("token-note"), "The endpoint refused that token. It is endpoint.token of the configuration.");
    dialog.showModal();
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem("warptape.token", byId("token-input").value);
      byId("token-input").value = "";
      asking = null;
      dialog.close();
      resolve();
    };
  });
  return asking;
}
// Without a token there is nothing to see, so the dialog comes back after Escape.
byId("token").addEventListener("close", () => {
  if (asking) byId("token").showModal();
});

/** The endpoint as far as the page has heard of it. Times are by this browser's clock. */
export const stream = { heard: -Infinity, isOpen: false, shown: null, trouble: "", snapshot: null };

/** Reads one stream to its end. Returns true if it had a snapshot. */
async function read(arrive) {
  const stop = new AbortController();
  const began = performance.now();
  const watchdog = setInterval(() => {
    if (!asking && performance.now() - Math.max(began, stream.heard) > SILENT_MS) stop.abort();
  }, 1000);
  let had = false;
  try {
    const response = await ask("live", stop.signal);
    stream.isOpen = true;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value: text, done } = await reader.read();
      if (done) return had;
      stream.heard = performance.now();
      const events = (rest + text).split(/\r?\n\r?\n/);
      rest = events.pop();
      const states = events.map(dataOf).filter(Boolean);
      if (states.length === 0) continue;
      had = true;
      arrive(JSON.parse(states.at(-1)));
    }
  } finally {
    stream.isOpen = false;
    clearInterval(watchdog);
    stop.abort();
  }
}
const dataOf = (event) =>
  event
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trim())
    .join("\n");

/** Follows the endpoint for as long as the page is open. The next stream opens at the end of each. */
export async function follow(arrive, fail) {
  for (let failures = 0; ;) {
    try {
      if (await read(arrive)) {
        failures = 0;
        continue;
      }
      stream.trouble = "";
    } catch (error) {
      stream.trouble =
        error instanceof Refused ? error.message : error instanceof SyntaxError ? "its snapshot cannot be read" : "";
    }
    failures += 1;
    fail();
    await pause(Math.min(500 * failures, 2500));
  }
}
