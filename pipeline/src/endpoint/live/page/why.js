// Explanations, in a dialog that the address names.

import { Refused, ask, pause } from "./endpoint.js";
import { byId, hide, write } from "./nodes.js";
import { plain } from "./text.js";

let explaining = null;
/** Shows the explanation that the address names, as in `#why=entry=0:123`. */
export async function explain() {
  const found = /^#why=(signal|entry|request)=(.+)$/.exec(location.hash);
  explaining?.abort();
  if (!found) {
    byId("why").close();
    return;
  }
  const [what, of] = [found[1], safelyDecoded(found[2])];
  const stop = new AbortController();
  explaining = stop;
  write(byId("why-title"), `Why: ${what} ${plain(of)}`);
  write(byId("why-text"), "");
  hide(byId("why-again"), true);
  hide(byId("why-copy"), true);
  write(byId("why-note"), "being explained …");
  if (!byId("why").open) byId("why").showModal();
  try {
    const text = await explanation(`why.txt?${what}=${encodeURIComponent(of)}`, stop.signal);
    // Lines stay; everything else that would hide or turn the text is made visible.
    write(
      byId("why-text"),
      text
        .split("\n")
        .map((line) => plain(line.replace(/\r$/, "").replaceAll("\t", "    ")))
        .join("\n"),
    );
    write(byId("why-note"), "");
    hide(byId("why-copy"), !navigator.clipboard);
  } catch (error) {
    if (stop.signal.aborted) return;
    write(byId("why-note"), error instanceof Refused ? error.message : "no answer");
    hide(byId("why-again"), false);
  }
}
async function explanation(path, signal) {
  for (;;) {
    try {
      return await (await ask(path, signal)).text();
    } catch (error) {
      if (error.status !== 429) throw error;
      write(byId("why-note"), "waiting, because another explanation is being made …");
      await pause(1000);
      signal.throwIfAborted();
    }
  }
}
function safelyDecoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function forgetWhy() {
  explaining?.abort();
  if (location.hash.startsWith("#why=")) history.replaceState(null, "", location.pathname + location.search);
}

byId("why").addEventListener("close", forgetWhy);
byId("why-close").addEventListener("click", () => byId("why").close());
byId("why-again").addEventListener("click", explain);
byId("why-copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(byId("why-text").textContent).then(
    () => write(byId("why-note"), "copied"),
    () => write(byId("why-note"), "the browser refuses to copy"),
  );
});
addEventListener("hashchange", explain);
if (location.hash) explain();
