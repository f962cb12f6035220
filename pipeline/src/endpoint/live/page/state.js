// The state of the process: its level, its verification, and its figures.

import { isAsking, stream } from "./endpoint.js";
import { attribute, byId, hide, list, make, shade, title, write } from "./nodes.js";
import {
  SIGNS,
  THIN,
  UNKNOWN,
  clock,
  counted,
  fixed,
  grade,
  isKnown,
  plain,
  rate,
  time,
  timeWords,
  whole,
} from "./text.js";

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
    const colour = { good: "#1b6b45", unknown: "#a85f00", bad: "#a52019" }[graded];
    const disc = `<circle cx="8" cy="8" r="7" fill="${colour}"/>`;
    const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${disc}</svg>`;
    byId("icon").href = `data:image/svg+xml,${encodeURIComponent(icon)}`;
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
  const version = plain(stream.snapshot?.process.version);
  const other = stream.isOther ? ` · version ${version} runs now: reload this page` : "";
  const when =
    age === null ? "no snapshot yet" : `${age < 1500 ? "now" : `${since} s ago`} · ${clock(stream.snapshot.at)} UTC`;
  write(byId("age"), when + restarted + other);
  const isBroken = isStale || (age === null && now > STALE_MS && !isAsking());
  const trouble = stream.trouble ? ` (${stream.trouble})` : "";
  const what = stream.isOpen ? "No new snapshot" : "No answer";
  if (isBroken)
    write(
      byId("broken"),
      `${what} since ${since} s, ${stream.isOpen ? "although the endpoint answers" : "trying again"}${trouble}`,
    );
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
  const level = { ok: "Ok", degraded: "Degraded", down: "Down" }[state.level] ?? plain(state.level);
  const heading = `${level}: ${plain(state.words)}`;
  const troubles = verdict("state", grade(state.level), heading);
  const bad = state.components.filter((component) => component.level !== "ok");
  const further = bad.filter((one) => one.reason !== state.words);
  const lines = further.map((one) => [one.name, `${plain(one.name)}: ${plain(one.reason)}`]);
  const well = state.components.length - bad.length;
  lines.push(["", `${bad.length > 0 ? "" : "all "}${counted(well, "component is", "components are")} ok`]);
  list(
    troubles,
    lines,
    ([name]) => name,
    () => {
      const node = make("li");
      return { node, show: ([, words]) => write(node, words) };
    },
  );
  list(
    byId("health"),
    state.components,
    (one) => one.name,
    (one) => {
      const reason = make("span");
      const word = make("span");
      const node = make("div", "", make("dt", "", plain(one.name)), make("dd", "", word, " ", reason));
      return {
        node,
        show: ({ level: of, reason: words }) => {
          write(word, `${SIGNS[grade(of)]} ${plain(of)}`);
          shade(word, { good: "good-word", unknown: "warn-word", bad: "bad-word" }[grade(of)]);
          write(reason, plain(words));
        },
      };
    },
  );
  const about = [process.node, `${process.group}, ordinal ${process.ordinal}`, stores.log, process.version];
  byId("about")
    .querySelectorAll("dd")
    .forEach((node, place) => {
      write(node, plain(about[place]) || UNKNOWN);
    });
  const skips = counted(skipped, "record", "records");
  const note = `The page reads signals and the journal at a bounded share of a core, and skipped ${skips}`;
  hide(byId("skipped"), !(skipped > 0));
  if (skipped > 0) write(byId("skipped"), `${note}: its lists and counts by kind are a sample. Totals are whole.`);
}

export function showVerified({ verified }) {
  if (!verified) {
    const words = verdict("verified", "absent", "Not verified here");
    write(words, "No verifier runs in this process, so whether its journal is right is unknown here.");
    return;
  }
  const isRight = !verified.difference;
  const heading = isRight
    ? `Verified to sequence ${whole(verified.sequence)}`
    : `Differs: verified to sequence ${whole(verified.sequence)} only`;
  const behind = Math.max(0, verified.newest - verified.sequence);
  const words = verdict("verified", isRight ? "good" : "bad", heading);
  title(byId("verified"), "A verifier within the process steps its journal again, and computes its outputs again");
  const progress = [
    `${counted(behind, "entry", "entries")} before the newest, ${whole(verified.newest)}`,
    `${counted(verified.outputs, "output", "outputs")} computed again and equal`,
    `at most ${verified.share_percent}${THIN}% of a core`,
  ].join(" · ");
  write(words, isRight ? progress : `${plain(verified.difference)}. ${progress}`);
}

const perSecond = (series) => [rate(series.at(-1)), "/s", series.at(-1)];
const sinceStart = () => "since the start";
/** The figures: text, unit and raw number; the line below with its total; the component of health. */
const TILES = [
  {
    id: "ticks",
    label: "Ticks per second",
    about: "Ticks accepted in the last second",
    figure: ({ history }) => perSecond(history.ticks_per_s),
    below: ({ totals }) => `${whole(totals.ticks)} since the start`,
    total: ({ totals }) => totals.ticks,
    component: "ticks",
  },
  {
    id: "signals",
    label: "Signals per second",
    about: "Signals committed in the last second",
    figure: ({ history }) => perSecond(history.signals_per_s),
    below: ({ totals }) => `${whole(totals.signals)} since the start`,
    total: ({ totals }) => totals.signals,
  },
  {
    id: "commits",
    label: "Commits per second",
    about: "Transactions committed in the last second",
    figure: ({ history }) => perSecond(history.commits_per_s),
    below: ({ totals }) => `${whole(totals.commits)} since the start`,
    total: ({ totals }) => totals.commits,
    component: "commits",
  },
  {
    id: "lag",
    label: "Lag",
    about: "Age of the oldest uncommitted record in the log, over all partitions",
    figure: ({ lag }) => (lag ? [fixed(lag.seconds, 1), "s", lag.seconds] : [UNKNOWN, "", null]),
    below: ({ lag }) => (lag ? counted(lag.records, "record", "records") : "the log does not tell"),
    component: "lag",
  },
  {
    id: "p50",
    label: "Tick → signal p50",
    about: "Half of the signals were committed within this time of the read of their tick",
    figure: ({ latency }) => [...time(latency?.p50_ms), latency?.p50_ms],
    below: ({ latency }) => (latency ? "publication to commit" : "no signal so far"),
  },
  {
    id: "p99",
    label: "Tick → signal p99",
    about: "99 % of the signals were committed within this time of the read of their tick",
    figure: ({ latency }) => [...time(latency?.p99_ms), latency?.p99_ms],
    below: ({ latency }) => (latency ? `p99.9 ${timeWords(latency.p999_ms)}` : "no signal so far"),
  },
  {
    id: "waiting",
    label: "Rows waiting",
    about: "Rows that wait on the host for a lane",
    figure: ({ totals }) => [whole(totals.waiting_rows), "rows", totals.waiting_rows],
    below: ({ totals }) => `${whole(totals.in_flight_rows)} in lanes`,
  },
  {
    id: "decisions",
    label: "Decisions",
    about: "Decisions of the scheduler since the start; each is in the journal",
    figure: ({ totals }) => [whole(totals.decisions), "", totals.decisions],
    below: sinceStart,
  },
  {
    id: "symbols",
    label: "Symbols",
    about: "Symbols of the partitions that this process owns",
    figure: ({ totals }) => [whole(totals.symbols), "", totals.symbols],
    below: ({ partitions }) => `in ${counted(partitions.length, "partition", "partitions")}`,
    component: "symbols",
  },
  {
    id: "late",
    label: "Late ticks",
    about: "Ticks behind the watermark, which are in no bar",
    figure: ({ totals }) => [whole(totals.late), "ticks", totals.late],
    below: sinceStart,
    component: "ticks",
  },
  {
    id: "dead",
    label: "Dead letters",
    about: "Records, and rows of records, that cannot be processed",
    figure: ({ totals }) => [whole(totals.dead_letters), "", totals.dead_letters],
    below: sinceStart,
    component: "dead_letters",
  },
  {
    id: "risk",
    label: "Risk requests",
    about: "Risk requests read",
    figure: ({ totals }) => [whole(totals.risk_requests), "", totals.risk_requests],
    below: sinceStart,
  },
];

const tiles = TILES.map((tile) => {
  const number = make("data", "", "…");
  const unit = make("span", "unit");
  const sub = make(tile.total ? "data" : "span", "sub", "…");
  const node = make("div", "tile", make("span", "label", tile.label), make("span", "value", number, unit), sub);
  node.id = `tile-${tile.id}`;
  node.title = tile.about;
  byId("tiles").append(node);
  return { ...tile, node, number, unit, sub };
});

export function showTiles(snapshot) {
  const bad = snapshot.state.components.filter((one) => one.level !== "ok");
  const unwell = new Set(bad.map((one) => one.name));
  for (const { node, number, unit, sub, ...tile } of tiles) {
    const [text, of, raw] = tile.figure(snapshot);
    write(number, text);
    attribute(number, "value", isKnown(raw) ? String(raw) : UNKNOWN);
    shade(number, text === UNKNOWN ? "unsure" : "");
    write(unit, of);
    write(sub, tile.below(snapshot));
    if (tile.total) attribute(sub, "value", String(tile.total(snapshot)));
    shade(node, unwell.has(tile.component) ? "tile warned" : "tile");
  }
}
