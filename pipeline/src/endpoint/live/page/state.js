// The state of the process: its level, its verification, and its figures.

import { isAsking, stream } from "./endpoint.js";
import { attribute, byId, hide, list, make, shade, title, write } from "./nodes.js";
import { SIGNS, THIN, UNKNOWN, clock, counted, fixed, grade, isKnown, plain, rate, time, timeWords, whole } from "./text.js";

/** Age from which on a snapshot says nothing of the present. */
export const STALE_MS = 3000;

export function showTitle() {
  const isStale = stream.shown === null || performance.now() - stream.shown > STALE_MS;
  const level = stream.snapshot?.state.level;
  const graded = isStale ? "bad" : grade(level);
  const words = isStale ? (stream.shown === null ? "waiting" : "no answer") : plain(level);
  const text = `${isStale ? "…" : SIGNS[graded]} ${words} – warptape`;
  if (document.title !== text) {
    document.title = text;
    const colour = { good: "1b6b45", unknown: "a85f00", bad: "a52019" }[graded];
    byId("icon").href = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23${colour}'/%3E%3C/svg%3E`;
    write(byId("spoken"), stream.shown === null ? "" : `State: ${words}`);
  }
  shade(byId("level"), `level ${stream.shown === null ? "" : graded}`);
  write(byId("level"), words);
}

export function showAge() {
  const now = performance.now();
  const age = stream.shown === null ? null : now - stream.shown;
  const isStale = age !== null && age > STALE_MS;
  const since = Math.floor((age ?? now) / 1000);
  const restarted = stream.restarted ? ` · totals began again at ${clock(stream.restarted)}` : "";
  const other = stream.isOther ? ` · version ${plain(stream.snapshot.process.version)} runs now: reload this page` : "";
  const when = age === null ? "no snapshot yet" : `${age < 1500 ? "now" : `${since} s ago`} · ${clock(stream.snapshot.at)} UTC`;
  write(byId("age"), when + restarted + other);
  const isBroken = isStale || (age === null && now > STALE_MS && !isAsking());
  const trouble = stream.trouble ? ` (${stream.trouble})` : "";
  const what = stream.isOpen ? "No new snapshot" : "No answer";
  if (isBroken) write(byId("broken"), `${what} since ${since} s, ${stream.isOpen ? "although the endpoint answers" : "trying again"}${trouble}`);
  hide(byId("broken"), !isBroken);
  byId("content").classList.toggle("stale", isStale);
  showTitle();
}

function verdict(id, graded, heading) {
  const node = byId(id);
  shade(node, `verdict ${graded}`);
  write(node.querySelector(".sign"), SIGNS[graded] ?? "–");
  write(node.querySelector("h2"), heading);
  return node.querySelector("div").lastElementChild;
}

export function showState({ state, process, stores, records_skipped: skipped }) {
  const heading = `${{ ok: "Ok", degraded: "Degraded", down: "Down" }[state.level] ?? plain(state.level)}: ${plain(state.words)}`;
  const troubles = verdict("state", grade(state.level), heading);
  const bad = state.components.filter((component) => component.level !== "ok");
  const further = bad.filter((one) => one.reason !== state.words);
  const lines = further.map((one) => [one.name, `${plain(one.name)}: ${plain(one.reason)}`]);
  const well = state.components.length - bad.length;
  lines.push(["", `${bad.length > 0 ? "" : "all "}${counted(well, "component is", "components are")} ok`]);
  list(troubles, lines, ([name]) => name, () => {
    const node = make("li");
    return { node, show: ([, words]) => write(node, words) };
  });
  list(byId("health"), state.components, (one) => one.name, (one) => {
    const reason = make("span");
    const word = make("span");
    const node = make("div", "", make("dt", "", plain(one.name)), make("dd", "", word, " ", reason));
    return {
      node,
      show: ({ level, reason: words }) => {
        write(word, `${SIGNS[grade(level)]} ${plain(level)}`);
        shade(word, { good: "good-word", unknown: "warn-word", bad: "bad-word" }[grade(level)]);
        write(reason, plain(words));
      },
    };
  });
  const about = [process.node, `${process.group}, ordinal ${process.ordinal}`, stores.log, process.version];
  byId("about").querySelectorAll("dd").forEach((node, place) => {
    write(node, plain(about[place]) || UNKNOWN);
  });
  const note = `The page reads signals and the journal at a bounded share of a core, and skipped ${counted(skipped, "record", "records")} of them: its lists and counts by kind are a sample. Totals are whole.`;
  hide(byId("skipped"), !(skipped > 0));
  if (skipped > 0) write(byId("skipped"), note);
}

export function showVerified({ verified }) {
  if (!verified) {
    const words = verdict("verified", "absent", "Not verified here");
    write(words, "No verifier runs in this process, so whether its journal is right is unknown here.");
    return;
  }
  const isRight = !verified.difference;
  const heading = isRight ? `Verified to sequence ${whole(verified.sequence)}` : `Differs: verified to sequence ${whole(verified.sequence)} only`;
  const behind = Math.max(0, verified.newest - verified.sequence);
  const words = verdict("verified", isRight ? "good" : "bad", heading);
  title(byId("verified"), "Entries of this process's journal were stepped again, and outputs computed again, by a verifier within the process");
  const progress = `${counted(behind, "entry", "entries")} before the newest, ${whole(verified.newest)} · ${counted(verified.outputs, "output", "outputs")} computed again and equal · at most ${verified.share_percent}${THIN}% of a core`;
  write(words, isRight ? progress : `${plain(verified.difference)}. ${progress}`);
}

const latest = (series) => (series.length > 0 ? series.at(-1) : null);
/** The figures: what is shown, its unit, what stands below it, and the component of health that it belongs to. */
const TILES = [
  ["ticks", "Ticks per second", "Ticks accepted in the last second", (s) => [rate(latest(s.history.ticks_per_s)), "/s", latest(s.history.ticks_per_s)], (s) => `${whole(s.totals.ticks)} since the start`, "ticks"],
  ["signals", "Signals per second", "Signals committed in the last second", (s) => [rate(latest(s.history.signals_per_s)), "/s", latest(s.history.signals_per_s)], (s) => `${whole(s.totals.signals)} since the start`],
  ["commits", "Commits per second", "Transactions committed in the last second", (s) => [rate(latest(s.history.commits_per_s)), "/s", latest(s.history.commits_per_s)], (s) => `${whole(s.totals.commits)} since the start`, "commits"],
  ["lag", "Lag", "Age of the oldest uncommitted record in the log, over all partitions", (s) => (s.lag ? [fixed(s.lag.seconds, 1), "s", s.lag.seconds] : [UNKNOWN, "", null]), (s) => (s.lag ? counted(s.lag.records, "record", "records") : "the log does not tell"), "lag"],
  ["p50", "Tick → signal p50", "Half of the signals were committed within this time of the read of their tick", (s) => [...time(s.latency?.p50_ms), s.latency?.p50_ms], (s) => (s.latency ? "read to commit" : "no signal so far")],
  ["p99", "Tick → signal p99", "99 % of the signals were committed within this time of the read of their tick", (s) => [...time(s.latency?.p99_ms), s.latency?.p99_ms], (s) => (s.latency ? `p99.9 ${timeWords(s.latency.p999_ms)}` : "no signal so far")],
  ["waiting", "Rows waiting", "Rows that wait on the host for a lane", (s) => [whole(s.totals.waiting_rows), "rows", s.totals.waiting_rows], (s) => `${whole(s.totals.in_flight_rows)} in lanes`],
  ["decisions", "Decisions", "Decisions of the scheduler since the start; each is in the journal", (s) => [whole(s.totals.decisions), "", s.totals.decisions], () => "since the start"],
  ["symbols", "Symbols", "Symbols of the partitions that this process owns", (s) => [whole(s.totals.symbols), "", s.totals.symbols], (s) => `in ${counted(s.partitions.length, "partition", "partitions")}`, "symbols"],
  ["late", "Late ticks", "Ticks behind the watermark, which are in no bar", (s) => [whole(s.totals.late), "ticks", s.totals.late], () => "since the start", "ticks"],
  ["dead", "Dead letters", "Records, and rows of records, that cannot be processed", (s) => [whole(s.totals.dead_letters), "", s.totals.dead_letters], () => "since the start", "dead_letters"],
  ["risk", "Risk requests", "Risk requests read", (s) => [whole(s.totals.risk_requests), "", s.totals.risk_requests], () => "since the start"],
];
/** Totals that stand below a figure, for tools and tests. */
const TOTALS = { ticks: "ticks", signals: "signals", commits: "commits" };

const tiles = new Map(TILES.map(([id, label, about]) => {
  const number = make("data");
  const unit = make("span", "unit");
  const sub = make(id in TOTALS ? "data" : "span", "sub", "…");
  const node = make("div", "tile", make("span", "label", label), make("span", "value", number, unit), sub);
  number.textContent = "…";
  node.id = `tile-${id}`;
  node.title = about;
  byId("tiles").append(node);
  return [id, { node, number, unit, sub }];
}));

export function showTiles(snapshot) {
  const unwell = new Set(snapshot.state.components.filter((one) => one.level !== "ok").map((one) => one.name));
  for (const [id, , , figure, below, component] of TILES) {
    const { node, number, unit, sub } = tiles.get(id);
    const [text, of, raw] = figure(snapshot);
    write(number, text);
    attribute(number, "value", isKnown(raw) ? String(raw) : UNKNOWN);
    shade(number, text === UNKNOWN ? "unsure" : "");
    write(unit, of);
    write(sub, below(snapshot));
    if (id in TOTALS) attribute(sub, "value", String(snapshot.totals[TOTALS[id]]));
    shade(node, unwell.has(component) ? "tile warned" : "tile");
  }
}
