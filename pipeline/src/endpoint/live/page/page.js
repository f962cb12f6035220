// The live page of a running pipeline: it follows `live`, and shows each snapshot in place.
//
//   live ─► follow ─► show ─► one function for each part, which changes only what differs
//   candles.json ─► Market      why.txt ─► the dialog of an explanation
//
// Names in a log may be anything. They reach the page as text, never as markup, with marks of direction made visible.

const UNKNOWN = "unknown";
const KEPT = 500;
const SHOWN = 60;
const STALE_MS = 3000;
const SILENT_MS = 8000;

const byId = (id) => document.getElementById(id);

// Text and numbers ----------------------------------------------------------------------------------------------------

const THIN = "\u202f";
const isKnown = (number) => typeof number === "number" && Number.isFinite(number);

/** A text without characters that hide or turn others: each is shown by its code. */
const plain = (text) =>
  String(text ?? "").replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, THIN);
const whole = (number) => (isKnown(number) ? (number < 0 ? "−" : "") + grouped(Math.abs(Math.round(number)).toString()) : UNKNOWN);
const fixed = (number, places) => {
  const [before, after] = Math.abs(number).toFixed(places).split(".");
  return (number < 0 ? "−" : "") + grouped(before) + (after ? `.${after}` : "");
};
const rate = (number) => (isKnown(number) && Math.abs(number) < 100 && number % 1 ? fixed(number, 1) : whole(number));
/** A number of any size, to about six digits. */
const value = (number) => {
  if (!isKnown(number)) return UNKNOWN;
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-4 || size >= 1e12)) return number.toExponential(3).replace("-", "−");
  return fixed(number, size >= 1000 ? 2 : size >= 1 ? 4 : 6);
};
const amount = (number) => (Number.isInteger(number) ? whole(number) : value(number));
/** A decimal of the log, to its last digit. */
const decimal = (text) => {
  const parts = /^(-?)(\d+)(\.\d+)?$/.exec(text);
  return parts ? (parts[1] && "−") + grouped(parts[2]) + (parts[3] ?? "") : plain(text);
};
const compact = (number) => {
  const size = Math.abs(number);
  for (const [unit, of] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (size >= of) return `${+(number / of).toPrecision(3)}${THIN}${unit}`;
  }
  return String(+number.toPrecision(3));
};
/** Milliseconds as a number and its unit. */
const time = (ms) => {
  if (!isKnown(ms)) return [UNKNOWN, ""];
  if (ms >= 60_000) return [whole(ms / 1000), "s"];
  if (ms >= 1000) return [fixed(ms / 1000, 2), "s"];
  return [fixed(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0), "ms"];
};
const timeWords = (ms) => time(ms).filter(Boolean).join(THIN);
const bytes = (count) => {
  if (!isKnown(count)) return UNKNOWN;
  const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  for (; count >= 1024 && step < steps.length - 1; step += 1) count /= 1024;
  return `${fixed(count, step > 0 && count < 100 ? 1 : 0)}${THIN}${steps[step]}`;
};
const counted = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;
/** The time of day of an ISO time, with milliseconds unless they are 0. */
const clock = (iso, always = false) => {
  const found = /T(\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?/.exec(iso ?? "");
  if (!found) return iso ? plain(iso) : UNKNOWN;
  const milliseconds = (found[2] ?? "").padEnd(3, "0");
  return always || milliseconds !== "000" ? `${found[1]}.${milliseconds}` : found[1];
};
const dated = (iso) => (/^\d{4}-\d\d-\d\dT/.test(iso ?? "") ? `${iso.slice(0, 10)} ${clock(iso)}` : plain(iso) || UNKNOWN);
const grade = (level) => ({ ok: "good", degraded: "unknown", down: "bad" })[level] ?? "unknown";
const SIGNS = { good: "✓", unknown: "▲", bad: "✕" };

// Nodes ---------------------------------------------------------------------------------------------------------------

/** Writes a text only if it differs, so that a selection stays. */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}
function attribute(node, name, text) {
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  return node;
}
const title = (node, text) => attribute(node, "title", text);
const hide = (node, hidden) => { if (node.hidden !== hidden) node.hidden = hidden; };
const shade = (node, name) => { if (node.className !== name) node.className = name; };

function make(tag, name = "", ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children.filter((child) => child !== null));
  return node;
}
/** A name from the log, isolated from the direction of the text around it. */
const named = (text, name = "") => {
  const node = make("bdi", name, plain(text));
  node.title = plain(text);
  return node;
};
const link = (text, asked) => {
  const node = make("a", "", text);
  node.href = `#why=${asked}`;
  node.title = "The whole explanation";
  return node;
};
const button = (name, text, onclick) => {
  const node = make("button", name, text);
  node.type = "button";
  node.addEventListener("click", onclick);
  return node;
};
/** A button that shows a symbol's candles. */
const symbolButton = (symbol) => {
  const node = button("link cut", named(symbol), (event) => {
    event.stopPropagation();
    choose(symbol);
    byId("h-market").scrollIntoView({ block: "start" });
  });
  node.title = `${plain(symbol)}: show its candles`;
  return node;
};

const shownIn = new WeakMap();
/** Shows items as children of a node. Nodes of items that stay are kept, with focus and selection. `create` returns the
 * item's node and the function that shows the item in it. */
function list(parent, items, keyOf, create) {
  const before = shownIn.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!after.has(key)) after.set(key, [before.get(key) ?? create(item), item]);
  }
  for (const [key, view] of before) if (!after.has(key)) view.node.remove();
  let next = parent.firstElementChild;
  const kept = new Map();
  for (const [key, [view, item]] of after) {
    if (view.node === next) next = next.nextElementSibling;
    else parent.insertBefore(view.node, next);
    view.show?.(item);
    kept.set(key, view);
  }
  shownIn.set(parent, kept);
}

const stored = (key) => { try { return localStorage.getItem(`warptape.${key}`); } catch { return null; } };
const store = (key, text) => { try { localStorage.setItem(`warptape.${key}`, text); } catch { /* Storage may be refused. */ } };

// The endpoint --------------------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, words) {
    super(words || `the endpoint answers with status ${status}`);
    this.status = status;
  }
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks the endpoint, with the token if it wants one. Throws on any answer but 200. */
async function ask(path, signal) {
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
/** Asks the reader for a token, unless another one was given since `refused` was sent. */
function newToken(refused) {
  if (sessionStorage.getItem("warptape.token") !== refused) return Promise.resolve();
  asking ??= new Promise((resolve) => {
    const dialog = byId("token");
    if (refused !== null) write(byId("token-note"), "The endpoint refused that token. It is endpoint.token of the configuration.");
    dialog.showModal();
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem("warptape.token", byId("token-input").value);
      byId("token-input").value = "";
      dialog.close();
      asking = null;
      resolve();
    };
  });
  return asking;
}
// Without a token there is nothing to see, so Escape does not close its dialog.
byId("token").addEventListener("cancel", (event) => event.preventDefault());

const stream = { heard: performance.now(), shown: null, trouble: "", snapshot: null };

/** Reads one stream to its end. Returns true if it had a snapshot. */
async function read() {
  const stop = new AbortController();
  const watchdog = setInterval(() => {
    if (!asking && performance.now() - stream.heard > SILENT_MS) stop.abort(new Error("the stream is silent"));
  }, 1000);
  let had = false;
  try {
    stream.heard = performance.now();
    const response = await ask("live", stop.signal);
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
    clearInterval(watchdog);
    stop.abort();
  }
}
const dataOf = (event) =>
  event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");

/** Follows the endpoint for as long as the page is open. The end of a stream is no trouble; the next one opens at once. */
async function follow() {
  for (let failures = 0; ;) {
    try {
      if (await read()) {
        failures = 0;
        continue;
      }
      stream.trouble = "";
    } catch (error) {
      stream.trouble = error instanceof Refused ? error.message : "";
    }
    failures += 1;
    showAge();
    await pause(Math.min(500 * failures, 2500));
  }
}

function arrive(snapshot) {
  const before = stream.snapshot;
  const isRestarted = before && (before.totals.commits > snapshot.totals.commits || before.totals.ticks > snapshot.totals.ticks);
  if (isRestarted) {
    stream.restarted = snapshot.at;
    busy.clear();
  }
  Object.assign(stream, { snapshot, shown: performance.now(), trouble: "" });
  gather(snapshot);
  requestShow();
}

let isWanted = false;
function requestShow() {
  if (isWanted) return;
  isWanted = true;
  // A hidden page shows no frames, but its title is seen.
  if (document.hidden) showTitle();
  requestAnimationFrame(() => {
    isWanted = false;
    if (stream.snapshot) show(stream.snapshot);
  });
}

// State, verification, figures ----------------------------------------------------------------------------------------

function showTitle() {
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

function showAge() {
  const now = performance.now();
  const age = stream.shown === null ? null : now - stream.shown;
  const isStale = age !== null && age > STALE_MS;
  const since = Math.floor((age ?? now) / 1000);
  const restarted = stream.restarted ? ` · totals began again at ${clock(stream.restarted)}` : "";
  const when = age === null ? "no snapshot yet" : `${age < 1500 ? "now" : `${since} s ago`} · ${clock(stream.snapshot.at)} UTC`;
  write(byId("age"), when + restarted);
  const isBroken = isStale || (age === null && now > STALE_MS && !asking);
  const trouble = stream.trouble ? ` (${stream.trouble})` : "";
  if (isBroken) write(byId("broken"), `No answer since ${since} s, trying again${trouble}`);
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

function showState({ state, process, stores, records_skipped: skipped }) {
  const heading = `${{ ok: "Ok", degraded: "Degraded", down: "Down" }[state.level] ?? plain(state.level)}: ${plain(state.words)}`;
  const troubles = verdict("state", grade(state.level), heading);
  const bad = state.components.filter((component) => component.level !== "ok");
  const lines = bad.map((one) => [one.name, `${plain(one.name)}: ${plain(one.reason)}`]);
  if (bad.length === 0) lines.push(["", `all ${counted(state.components.length, "component", "components")} are ok`]);
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

function showVerified({ verified }) {
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

function showTiles(snapshot) {
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

// Colours of canvases -------------------------------------------------------------------------------------------------

const probe = make("span");
probe.hidden = true;
document.body.append(probe);
const colours = new Map();
/** A colour of page.css as the canvas takes it, by the present scheme. */
function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}
const faded = (name, share) => colour(name).replace(/^rgba?\(([^)]*)\)$/, (_, parts) => `rgba(${parts.split(",").slice(0, 3).join(",")},${share})`);

const THEMES = ["system", "light", "dark"];
function useTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.colours;
  else document.documentElement.dataset.colours = theme;
  write(byId("theme"), `Colours: ${theme}`);
  colours.clear();
  charts.forEach((chart) => chart.redraw(false));
  market.build();
  if (stream.snapshot) requestShow();
}

// Charts of the last two minutes --------------------------------------------------------------------------------------

const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const axis = (more) => ({
  stroke: () => colour("quiet"), font, grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, gap: 4, ...more,
});
/** Keeps a chart as wide as its place. */
function fitted(chart, host) {
  const watch = new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = host;
    if (width > 0 && (width !== chart.width || height !== chart.height)) chart.setSize({ width, height });
  });
  watch.observe(host);
  return () => watch.disconnect();
}

const SERIES = [
  ["ticks_per_s", "Ticks", "/s", "blue", "Ticks accepted in each second"],
  ["signals_per_s", "Signals", "/s", "teal", "Signals committed in each second"],
  ["commits_per_s", "Commits", "/s", "violet", "Transactions committed in each second"],
  ["lag_s", "Lag", "s", "slate", "Age of the oldest uncommitted record; a gap where it is unknown"],
  ["waiting_rows", "Rows waiting", "rows", "amber", "Rows that wait on the host"],
];
const SECONDS = 120;

const charts = SERIES.map(([key, label, unit, hue, about]) => {
  const facts = make("span", "facts");
  const host = make("div", "plot");
  const figure = make("figure", "", make("figcaption", "", label, facts), host);
  host.setAttribute("role", "img");
  figure.title = about;
  byId("charts").append(figure);
  let values = [];
  const tell = (at) => {
    const words = (number) => (isKnown(number) ? `${rate(number)}${THIN}${unit}` : UNKNOWN);
    const short = (number) => (isKnown(number) ? rate(number) : UNKNOWN);
    const known = values.filter(isKnown);
    const ago = values.length - 1 - at;
    const text = at === null || values[at] === undefined
      ? `now ${short(latest(values))} · most ${known.length > 0 ? words(Math.max(...known)) : UNKNOWN}`
      : `${ago}${THIN}s ago ${words(values[at])}`;
    write(facts, text);
  };
  const plot = new uPlot({
    width: host.clientWidth || 300, height: 112, legend: { show: false }, padding: [8, 12, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, sync: { key: "seconds" } },
    scales: {
      x: { time: false, range: [1 - SECONDS, 0] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      axis({ size: 22, splits: () => [-90, -60, -30, 0], values: (_, splits) => splits.map((at) => (at === 0 ? "now" : `${at} s`.replace("-", "−"))) }),
      axis({ size: 46, space: 28, values: (_, splits) => splits.map(compact) }),
    ],
    series: [{}, { stroke: () => colour(hue), fill: () => faded(hue, 0.14), width: 1.25, points: { show: false } }],
    hooks: { setCursor: [(one) => tell(one.cursor.left >= 0 ? one.cursor.idx : null)] },
  }, [[], []], host);
  fitted(plot, host);
  return {
    redraw: () => plot.redraw(false),
    show: (history) => {
      const next = history[key].slice(-SECONDS);
      if (next.length === values.length && next.every((one, place) => one === values[place])) return;
      values = next;
      plot.setData([values.map((_, place) => place + 1 - values.length), values]);
      tell(plot.cursor.left >= 0 ? plot.cursor.idx : null);
      attribute(host, "aria-label", `${label} in each of the last ${values.length} seconds. ${facts.textContent}`);
    },
  };
});

// Lanes ---------------------------------------------------------------------------------------------------------------

const STRIP = 60;
const busy = new Map();
const LANE_WORDS = { working: ["●", "good-word"], idle: ["○", "quiet-word"], lost: ["✕", "bad-word"], drained: ["◌", "warn-word"], held: ["‖", "warn-word"] };
const LANE_ABOUT = {
  working: "has work", idle: "waits for work", lost: "its device does not answer; its groups moved",
  drained: "an operator took it out of service", held: "its breaker keeps work from it",
};

function showLanes({ at, lanes }) {
  const second = at.slice(0, 19);
  for (const lane of lanes) {
    const strip = busy.get(lane.lane) ?? { cells: [], second: "" };
    if (strip.second !== second) strip.cells.push({});
    Object.assign(strip.cells.at(-1), { percent: lane.busy_percent, state: lane.state });
    strip.cells = strip.cells.slice(-STRIP);
    strip.second = second;
    busy.set(lane.lane, strip);
  }
  const states = new Map();
  for (const { state } of lanes) states.set(state, (states.get(state) ?? 0) + 1);
  write(byId("lanes-note"), [...states].map(([state, count]) => `${count} ${plain(state)}`).join(" · "));
  list(byId("lanes"), lanes, (lane) => lane.lane, laneView);
  hide(byId("lanes").nextElementSibling, lanes.length > 0);
}

function laneView({ lane: index }) {
  const device = named("");
  const state = make("span", "state");
  const strip = make("canvas", "strip");
  const [percent, perSecond, flight, wait] = ["", "rate", "flight", "wait"].map((name) => make("span", `number ${name}`));
  const [perSecondText, flightText, waitText] = [perSecond, flight, wait].map((node) => node.appendChild(make("span")));
  [[perSecond, " rows/s"], [flight, " in flight"], [wait, " waiting"]].forEach(([node, unit]) => node.append(make("span", "small", unit)));
  const summary = make("summary");
  const symbols = make("div", "chips");
  const groups = make("p");
  const details = make("details", "", summary, symbols, groups);
  const node = make("li", "lane", make("span", "name", `${index} `, make("span", "", "· ", device)), state, percent, strip, perSecond, flight, wait, details);
  strip.setAttribute("role", "img");
  [[percent, "Share of the last second at work, in percent"], [perSecond, "Rows finished per second"], [flight, "Rows in flight on the lane"], [wait, "Rows that wait for the lane on the host"]]
    .forEach(([of, about]) => title(of, about));
  let latestLane;
  const showInside = () => {
    if (!details.open) return;
    list(symbols, latestLane.symbols, (symbol) => symbol, (symbol) => ({ node: symbolButton(symbol) }));
    const more = latestLane.groups.length >= 64 ? " (the first 64)" : "";
    write(groups, `Groups (partition:group)${more}: ${latestLane.groups.map(plain).join(", ") || "none"}`);
  };
  details.addEventListener("toggle", showInside);
  return {
    node,
    show: (lane) => {
      latestLane = lane;
      const [sign, word] = LANE_WORDS[lane.state] ?? ["?", "warn-word"];
      write(device, plain(lane.device));
      write(state, `${sign} ${plain(lane.state)}`);
      shade(state, `state ${word}`);
      title(state, LANE_ABOUT[lane.state] ?? "a state that only a newer page knows");
      write(percent, `${rate(lane.busy_percent)}${THIN}%`);
      write(perSecondText, rate(lane.rows_per_s));
      write(flightText, whole(lane.in_flight_rows));
      write(waitText, whole(lane.waiting_rows));
      const places = `${lane.groups.length >= 64 ? "64 or more groups" : counted(lane.groups.length, "group", "groups")} · ${lane.symbols.length >= 64 ? "64 or more symbols" : counted(lane.symbols.length, "symbol", "symbols")}`;
      write(summary, lane.symbols.length > 0 ? `${places}: ${lane.symbols.slice(0, 8).map((symbol) => plain(symbol).slice(0, 40)).join(", ")}` : places);
      showInside();
      drawStrip(strip, busy.get(lane.lane).cells);
      attribute(strip, "aria-label", `Busy ${Math.round(lane.busy_percent)} % of the last second`);
      title(strip, `Share of each second at work since this page looks, at most ${STRIP} s; a lost, held or drained lane is in the colour of its state`);
    },
  };
}

function drawStrip(canvas, cells) {
  const scale = devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
  if (width === 0) return;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const paint = canvas.getContext("2d");
  paint.clearRect(0, 0, width, height);
  const hues = { lost: "red", held: "violet", drained: "slate" };
  cells.forEach(({ percent, state }, place) => {
    const from = Math.round((width * (STRIP - cells.length + place)) / STRIP);
    const to = Math.round((width * (STRIP - cells.length + place + 1)) / STRIP);
    const hue = hues[state];
    const share = hue ? 0.75 : Math.min(1, Math.max(0, percent / 100));
    paint.fillStyle = colour(hue ?? "blue");
    // A lane that does a little is told from an idle one.
    paint.globalAlpha = hue ? share : share > 0 ? 0.12 + 0.88 * share : 0;
    paint.fillRect(from, 0, to - from, height);
  });
}

// Lists that fall fast ------------------------------------------------------------------------------------------------

let isPaused = false;
const feeds = [];

/** A list of the newest items. It is held while the lists are paused, and while the reader points at it, has the focus in
 * it or has selected text in it. */
class Feed {
  constructor(id, keyOf, create, matches, empty) {
    Object.assign(this, { body: byId(id), keyOf, create, matches, empty, kept: new Map(), shown: [] });
    this.section = this.body.closest("section");
    this.scroll = this.body.closest(".scroll");
    this.newer = this.section.querySelector(".newer");
    this.none = this.section.querySelector(":scope > .none");
    this.newer.addEventListener("click", () => this.release());
    feeds.push(this);
  }
  /** Takes the newest items, the newest first. */
  gather(items, merge = (_, item) => item) {
    for (const item of [...items].reverse()) {
      const key = this.keyOf(item);
      this.kept.set(key, merge(this.kept.get(key), item));
    }
    for (const key of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(key);
    }
  }
  why() {
    if (isPaused) return "paused";
    if (document.querySelector("dialog[open]") || this.scroll.contains(document.activeElement)) return "held";
    if (matchMedia("(hover: hover)").matches && this.scroll.matches(":hover")) return "held";
    const selection = getSelection();
    return !selection.isCollapsed && this.scroll.contains(selection.anchorNode) ? "held" : "";
  }
  release() {
    if (isPaused) togglePause();
    if (this.scroll.contains(document.activeElement)) document.activeElement.blur();
    getSelection().removeAllRanges();
    this.scroll.scrollTop = 0;
    this.show(true);
  }
  show(now = false) {
    const fitting = [...this.kept.values()].filter(this.matches).reverse().slice(0, SHOWN);
    const why = now || this.shown.length === 0 ? "" : this.why();
    const newer = fitting.findIndex((item) => this.keyOf(item) === this.shown[0]);
    const count = newer < 0 ? fitting.length : newer;
    hide(this.newer, !why || count === 0);
    if (why) {
      write(this.newer, `${why} · ${newer < 0 ? `${whole(count)} or more` : whole(count)} newer`);
      // Items that stay may still change, as a risk request does when it is answered.
      const held = this.shown.map((key) => this.kept.get(key)).filter(Boolean);
      shownIn.get(this.body)?.forEach((view, key) => { const item = held.find((one) => this.keyOf(one) === key); if (item) view.show?.(item); });
      return;
    }
    list(this.body, fitting, this.keyOf, this.create);
    this.shown = fitting.map(this.keyOf);
    hide(this.none, fitting.length > 0);
    if (fitting.length === 0) write(this.none, this.kept.size === 0 ? this.empty : "Nothing fits among what this page has seen.");
  }
}

/** Opens an explanation by a click anywhere on an item, unless it is on a control or the reader selects text. */
const opens = (node, asked) => node.addEventListener("click", (event) => {
  if (!event.target.closest("a, button") && getSelection().isCollapsed) location.hash = `why=${asked}`;
});

/** `Dispatch: batch 4 …` with its first word set off. */
const worded = (text) => {
  const found = /^([A-Z]\w*): ([^]*)$/.exec(text);
  if (!found) return [plain(text)];
  const tone = /^(Fence|LaneLost|Reject|Expire|Shed)/.test(found[1]) ? "d-bad" : /^(Pause|Breaker|Restore|FellBack|Drift|Headroom)/.test(found[1]) ? "d-warn" : /^(Dispatch|Place|RunSlice|Admit|Finish)/.test(found[1]) ? "d-calm" : "";
  return [make("b", tone, found[1]), ` ${plain(found[2])}`];
};

let wanted = [];
const decisions = new Feed("decisions", (entry) => entry.place, (entry) => {
  const when = link(clock(entry.at, true), `entry=${entry.place}`);
  when.className = "when";
  when.title = `${plain(entry.at)}, entry ${plain(entry.place)}: the whole explanation`;
  const reasons = entry.reasons.map((reason) => make("li", "", ...worded(reason)));
  const node = make("li", "entry", when, make("p", "input", ...worded(entry.words)), make("ul", "reasons", ...reasons));
  opens(node, `entry=${entry.place}`);
  return { node };
}, (entry) => {
  if (wanted.length === 0) return true;
  entry.searched ??= [entry.place, entry.words, ...entry.reasons].join("\n").toLowerCase();
  return wanted.every((word) => entry.searched.includes(word));
}, "No decision so far.");

let alertsOnly = stored("alerts") === "1";
const signals = new Feed("signals", (signal) => signal.place, (signal) => {
  const end = link(dated(signal.end), `signal=${signal.place}`);
  end.title = `${plain(signal.end)}, signal ${plain(signal.place)}: the whole explanation`;
  const kind = make("td", signal.kind === "BAR" ? "quiet-word" : "alert-kind", plain(signal.kind));
  const node = make("tr", "open", make("td", "", end), make("td", "", symbolButton(signal.symbol)), make("td", "", named(signal.bar)), kind, make("td", "number", value(signal.value)));
  opens(node, `signal=${signal.place}`);
  return { node };
}, (signal) => !alertsOnly || signal.kind !== "BAR", "No signal so far.");

const isAnswer = (risk) => risk.outcome !== "asked";
const risk = new Feed("risk", (pair) => pair.id, (pair) => {
  const id = link(named(pair.id, "cut"), `request=${encodeURIComponent(pair.id)}`);
  const [kind, who, outcome, took, answer] = ["", "", "", "number", "wrap"].map((name) => make("td", name));
  const node = make("tr", "open", make("td", "", id), kind, who, outcome, took, answer);
  opens(node, `request=${encodeURIComponent(pair.id)}`);
  return {
    node,
    show: ({ asked, answered }) => {
      const fields = { ...asked?.fields, ...answered?.fields };
      write(kind, plain((asked ?? answered).kind));
      write(who, [fields.tenant, fields.class].filter(Boolean).map(plain).join(", ") || UNKNOWN);
      write(outcome, answered ? plain(answered.outcome) : "asked, not answered yet");
      shade(outcome, !answered ? "quiet-word" : answered.outcome.toLowerCase() === "done" ? "good-word" : "bad-word");
      write(took, answered ? timeWords((fields.finished_ns - fields.received_ns) / 1e6) : "");
      write(answer, answered ? summed(fields.outcome) : "");
    },
  };
}, () => true, "No risk request so far.");
// The newest records come first, so the asking one may follow its answer.
const paired = (before, item) => ({ id: item.id, ...before, [isAnswer(item) ? "answered" : "asked"]: item });

/** The answer of a risk result in a line: numbers with their names, and the lengths of lists. */
function summed(outcome) {
  const branch = outcome && typeof outcome === "object" && Object.keys(outcome).length === 1 ? Object.values(outcome)[0] : outcome;
  if (branch === null || typeof branch !== "object") return plain(branch) || UNKNOWN;
  if (branch.message) return [branch.field, branch.message].filter(Boolean).map(plain).join(": ");
  const parts = Object.entries(branch).map(([name, part]) => {
    const said = plain(name).replaceAll("_", " ");
    if (isKnown(part)) return `${said} ${amount(part)}`;
    if (Array.isArray(part)) return part.length > 0 ? counted(part.length, said.replace(/s$/, ""), said) : null;
    return typeof part === "string" && part ? `${said} ${plain(part)}` : null;
  });
  return parts.filter(Boolean).slice(0, 5).join(" · ") || UNKNOWN;
}

function gather(snapshot) {
  decisions.gather(snapshot.decisions);
  signals.gather(snapshot.signals);
  risk.gather(snapshot.risk.map((item) => ({ ...item })), paired);
}

function showFeeds(snapshot) {
  feeds.forEach((feed) => feed.show());
  write(byId("decisions-note"), `newest ${whole(decisions.shown.length)} of the ${counted(decisions.kept.size, "entry", "entries")} kept here`);
  write(byId("signals-note"), `newest ${whole(signals.shown.length)} of the ${whole(signals.kept.size)} kept here`);
  write(byId("risk-note"), `newest ${whole(risk.shown.length)} of the ${counted(risk.kept.size, "request", "requests")} kept here`);
  list(byId("kinds"), Object.entries(snapshot.signals_by_kind), ([kind]) => kind, ([kind]) => {
    const count = make("b");
    const node = make("span", "", `${plain(kind)} `, count);
    node.title = "Signals of this kind, as far as this page's server has read them";
    return { node, show: ([, number]) => write(count, whole(number)) };
  });
}

// Partitions, stores, devices -----------------------------------------------------------------------------------------

function showPartitions({ partitions }) {
  list(byId("partitions"), partitions, (one) => one.partition, (one) => {
    const cells = ["number", "", "", "number", "number", "number", "number"].map((name) => make("td", name));
    write(cells[0], String(one.partition));
    return {
      node: make("tr", "", ...cells),
      show: ({ is_restoring: restoring, is_paused: paused, watermark, symbols, waiting_rows: waiting, lag }) => {
        shade(cells[1], restoring || paused ? "warn-word" : "");
        const texts = [restoring ? "restoring" : paused ? "paused" : "reading", watermark ? dated(watermark) : "no tick yet", whole(symbols), whole(waiting), lag ? whole(lag.records) : UNKNOWN, lag ? fixed(lag.seconds, 1) : UNKNOWN];
        texts.forEach((text, place) => write(cells[place + 1], text));
      },
    };
  });
  hide(byId("partitions").closest("section").querySelector(".none"), partitions.length > 0);
}

function share(used, total) {
  const node = make("meter");
  Object.assign(node, { min: 0, max: total, value: used });
  return node;
}

function showStores({ stores, state }) {
  const rows = [
    ["Log", plain(stores.log) || UNKNOWN, "URL of the log"],
    ["Answers", stores.lost === null ? "✓ it answers" : `✕ ${plain(stores.lost)}`, "Whether the log answers", stores.lost === null ? "good-word" : "bad-word"],
    ["Disk", stores.disk_free_bytes === null ? "not on a disk of this machine" : `${bytes(stores.disk_free_bytes)} free of ${bytes(stores.disk_size_bytes)}`, "Free space on the disk of an embedded log"],
    ["Hot state", stores.hot_state === null ? "in memory, without Redis" : plain(stores.hot_state), "Latest values for other programs"],
  ];
  const redis = state.components.find((one) => one.name === "hot_state");
  if (stores.hot_state !== null && redis?.level !== "ok" && redis) rows[3][3] = "warn-word";
  list(byId("stores"), rows, ([name]) => name, ([name, , about]) => {
    const text = make("span");
    const of = make("dd", "", text);
    const meter = name === "Disk" ? of.appendChild(share(0, 1)) : null;
    const node = make("div", "", make("dt", "", name), of);
    node.title = about;
    return {
      node,
      show: ([, words, , tone = ""]) => {
        write(text, words);
        shade(text, tone);
        if (!meter) return;
        const isDisk = isKnown(stores.disk_size_bytes) && stores.disk_size_bytes > 0;
        hide(meter, !isDisk);
        meter.setAttribute("aria-label", "Used space");
      },
    };
  });
  const meter = byId("stores").querySelector("meter");
  if (isKnown(stores.disk_size_bytes)) Object.assign(meter, { max: stores.disk_size_bytes, value: stores.disk_size_bytes - stores.disk_free_bytes });
}

function showDevices({ devices, lanes }) {
  list(byId("devices"), devices, (device) => device.device, deviceView);
  const none = byId("devices").nextElementSibling;
  hide(none, devices.length > 0);
  const isHost = lanes.length > 0 && lanes.every((lane) => lane.device.startsWith("cpu"));
  if (devices.length === 0) write(none, isHost ? "No GPU: all lanes are on the processor." : "unknown: no GPU has been measured");
}

function deviceView({ device }) {
  const health = make("span");
  const rows = make("dl");
  const meter = share(0, 1);
  const memory = make("span");
  meter.setAttribute("aria-label", "Used memory");
  const node = make("li", "device", make("h3", "", named(device), health), rows, memory, meter);
  return {
    node,
    show: (one) => {
      const of = { ...one, ...one.memory };
      write(health, of.healthy ? "✓ healthy" : `✕ ${(of.reasons ?? []).map(plain).join("; ") || "unhealthy"}`);
      shade(health, of.healthy ? "good-word" : "bad-word");
      const unit = (number, name, places = 0) => (isKnown(number) ? `${fixed(number, places)}${THIN}${name}` : UNKNOWN);
      const facts = [
        ["Temperature", `${unit(of.temperature_celsius, "°C")}${isKnown(of.slowdown_celsius) ? `, slows at ${of.slowdown_celsius}${THIN}°C` : ""}`],
        ["Power", unit(of.power_watts, "W", 1)], ["Busy", unit(of.utilization_percent, "%")],
        ["SM clock", unit(of.sm_clock_megahertz, "MHz")], ["Memory clock", unit(of.memory_clock_megahertz, "MHz")],
        ["Slowed by", of.throttle_reasons ? of.throttle_reasons.map(plain).join(", ") || "nothing" : UNKNOWN],
        ["ECC errors", isKnown(of.ecc_errors_uncorrected) ? whole(of.ecc_errors_uncorrected) : UNKNOWN],
        ["Xid errors", whole(of.xid_errors)],
        ["Lanes", (of.lanes ?? []).map((lane) => lane.lane).join(", ") || "none"],
      ];
      list(rows, facts, ([name]) => name, ([name]) => {
        const text = make("dd");
        return { node: make("div", "", make("dt", "", name), text), show: ([, words]) => write(text, words) };
      });
      write(memory, `Memory: ${bytes(of.used_bytes)} used of ${bytes(of.total_bytes)}`);
      hide(meter, !isKnown(of.total_bytes));
      if (isKnown(of.total_bytes)) Object.assign(meter, { max: of.total_bytes, value: of.used_bytes });
    },
  };
}

// Candles -------------------------------------------------------------------------------------------------------------

/** Indicators by the place where they are drawn: on the prices, or in a pane with its own scale. */
const INDICATORS = [
  ["SMA", "price", { sma: "blue" }], ["EMA", "price", { ema_fast: "amber", ema_slow: "violet" }],
  ["Bollinger", "price", { bollinger_upper: "slate", bollinger_middle: "slate", bollinger_lower: "slate" }],
  ["VWAP", "price", { vwap: "pink" }], ["RSI", "pane", { rsi: "violet" }],
  ["MACD", "pane", { macd: "blue", macd_signal: "amber", macd_histogram: "slate" }], ["ATR", "pane", { atr: "amber" }],
  ["Momentum", "pane", { momentum: "blue" }], ["ROC", "pane", { roc: "blue" }], ["z-score", "pane", { zscore: "teal" }],
  ["Volatility", "pane", { realised_volatility: "pink" }], ["Stochastic", "pane", { stochastic_k: "blue", stochastic_d: "amber" }],
];
const KNOWN_INDICATORS = new Set(INDICATORS.flatMap(([, , columns]) => Object.keys(columns)));
const isBelow = (kind) => /_(DOWN|LOW)$|OVERSOLD/.test(kind);
const CANDLE_PX = 8;

const market = {
  symbol: stored("symbol"), bar: stored("bar"), data: null, trouble: "", plots: [], undo: [], at: null, refusals: 0,
  chosen: new Set((stored("indicators") ?? "EMA,Bollinger").split(",").filter(Boolean)),

  /** Indicators of which the candles have a value; one that this page does not know gets a pane. */
  offered() {
    const names = new Set((this.data?.candles ?? []).flatMap((candle) => Object.keys(candle.indicators)));
    const known = INDICATORS.filter(([, , columns]) => Object.keys(columns).some((name) => names.has(name)));
    const further = [...names].filter((name) => !KNOWN_INDICATORS.has(name)).sort();
    return [...known, ...further.map((name) => [plain(name), "pane", { [name]: "teal" }])];
  },

  async fetch() {
    if (document.hidden || !this.symbol || !this.bar || performance.now() - (stream.shown ?? -Infinity) > STALE_MS) return;
    const [symbol, bar] = [this.symbol, this.bar];
    try {
      const path = `candles.json?symbol=${encodeURIComponent(symbol)}&bar=${encodeURIComponent(bar)}`;
      const data = await (await ask(path)).json();
      if (symbol !== this.symbol || bar !== this.bar) return;
      Object.assign(this, { trouble: "", refusals: 0 });
      this.take(data);
    } catch (error) {
      if (symbol !== this.symbol || bar !== this.bar) return;
      this.trouble = error instanceof Refused ? error.message : "";
      this.refusals += 1;
    }
    this.note();
  },

  take(data) {
    const mark = (one) => one && `${one.symbol}\n${one.bar}\n${one.candles.length}\n${one.candles.at(-1)?.end}\n${one.signals.length}`;
    if (mark(data) === mark(this.data)) return;
    const shape = this.shape();
    this.data = data;
    this.ends = new Map();
    for (const signal of data.signals) this.ends.set(signal.end, [...(this.ends.get(signal.end) ?? []), signal]);
    this.offer();
    if (shape === this.shape()) this.fill();
    else this.build();
    this.table();
  },
  shape() { return JSON.stringify(this.offered().filter(([name]) => this.chosen.has(name))); },

  /** The candles that have room. */
  visible() {
    const room = Math.max(20, Math.floor((byId("candles").clientWidth - 70) / CANDLE_PX));
    return (this.data?.candles ?? []).slice(-room);
  },

  offer() {
    list(byId("indicators"), this.offered(), ([name]) => name, ([name, , columns]) => {
      const box = make("input");
      box.type = "checkbox";
      box.checked = this.chosen.has(name);
      box.addEventListener("change", () => {
        if (box.checked) this.chosen.add(name);
        else this.chosen.delete(name);
        store("indicators", [...this.chosen].join(","));
        this.build();
      });
      const sample = make("i");
      sample.style.background = `var(--${Object.values(columns)[0]})`;
      return { node: make("label", "check", box, sample, name) };
    });
  },

  /** Makes the charts anew, for other indicators or colours. */
  build() {
    this.undo.forEach((undo) => undo());
    Object.assign(this, { plots: [], undo: [], at: null });
    const host = byId("candles");
    host.replaceChildren();
    if (!this.data) return;
    const chosen = this.offered().filter(([name]) => this.chosen.has(name));
    const lines = chosen.filter(([, where]) => where === "price").flatMap(([, , columns]) => Object.entries(columns));
    this.add(host, "main", null, lines, true);
    for (const [name, , columns] of chosen.filter(([, where]) => where === "pane")) this.add(host, "pane", name, Object.entries(columns), false);
    this.tip = make("div", "tip");
    this.tip.hidden = true;
    host.append(this.tip);
    this.fill();
  },

  add(host, name, heading, lines, isMain) {
    const place = make("div", name, ...(heading ? [make("span", "name", heading)] : []));
    host.append(place);
    const columns = isMain ? ["open", "high", "low", "close", "volume"] : [];
    const hidden = columns.map((column) => ({ scale: column === "volume" ? "volume" : "y", paths: () => null, points: { show: false } }));
    const drawn = lines.map(([column, hue]) => ({
      scale: "y", stroke: () => colour(hue), width: 1.25, points: { show: false }, spanGaps: false,
      ...(column === "macd_histogram" ? { paths: uPlot.paths.bars({ size: [0.6, 6] }), fill: () => faded(hue, 0.5), width: 0 } : {}),
      ...(column.startsWith("bollinger") ? { dash: column === "bollinger_middle" ? [3, 3] : undefined, width: 1 } : {}),
    }));
    const spaced = (_, least, most) => {
      if (!isKnown(least) || !isKnown(most)) return [0, 1];
      const margin = (most - least || Math.abs(most) || 1) * 0.06;
      // Volumes have the lowest fifth of the prices' chart.
      return [least - margin * (isMain ? 4 : 1), most + margin * (isMain ? 1.6 : 1)];
    };
    const plot = new uPlot({
      width: place.clientWidth || 300, height: place.clientHeight || 92, legend: { show: false }, padding: [isMain ? 8 : 6, 4, isMain ? 0 : 4, 0],
      cursor: { drag: { x: false, y: false }, points: { show: false }, sync: { key: "candles", scales: ["x", null] }, y: isMain },
      scales: {
        x: { time: false, range: () => [-0.5, Math.max(this.visible().length, 20) - 0.5] },
        y: { range: spaced },
        ...(isMain ? { volume: { range: (_, __, most) => [0, most > 0 ? most * 5 : 1] } } : {}),
      },
      axes: [
        axis(isMain ? { size: 24, space: 72, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, splits) => splits.map((at) => (this.visible()[at] ? clock(this.visible()[at].end) : "")) } : { size: 0, values: () => [] }),
        axis({ size: 62, space: isMain ? 36 : 28, values: (_, splits) => labels(splits) }),
      ],
      series: [{}, ...hidden, ...drawn],
      hooks: {
        ...(isMain ? { drawAxes: [(one) => this.draw(one)], draw: [(one) => this.drawSignals(one)] } : {}),
        setCursor: [(one) => { if (isMain) this.point(one.cursor.left >= 0 ? one.cursor.idx : null); }],
      },
    }, [[]], place);
    this.undo.push(fitted(plot, place), () => plot.destroy());
    this.plots.push({ plot, columns: [...columns, ...lines.map(([column]) => column)], count: columns.length });
  },

  fill() {
    const candles = this.visible();
    for (const { plot, columns, count } of this.plots) {
      const series = columns.map((column, place) => candles.map((candle) => (place < count ? Number(candle[column]) : candle.indicators[column] ?? null)));
      plot.setData([candles.map((_, place) => place), ...series]);
    }
    this.tell();
  },

  draw(plot) {
    const { ctx: paint } = plot;
    const [, opens, highs, lows, closes, volumes] = plot.data;
    if (!opens?.length) return;
    const scale = devicePixelRatio || 1;
    const step = plot.valToPos(1, "x", true) - plot.valToPos(0, "x", true);
    const width = Math.max(1, Math.round(Math.min(step * 0.66, 14 * scale)));
    paint.save();
    paint.beginPath();
    paint.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    paint.clip();
    paint.lineWidth = Math.max(1, Math.round(scale));
    opens.forEach((open, place) => {
      const rises = closes[place] >= open;
      const x = Math.round(plot.valToPos(place, "x", true));
      const [top, bottom, high, low, volume] = [Math.max(open, closes[place]), Math.min(open, closes[place]), highs[place], lows[place]]
        .map((price) => Math.round(plot.valToPos(price, "y", true)))
        .concat(Math.round(plot.valToPos(volumes[place], "volume", true)));
      const left = x - Math.floor(width / 2);
      const floor = plot.bbox.top + plot.bbox.height;
      paint.fillStyle = faded("slate", 0.28);
      paint.fillRect(left, volume, width, floor - volume);
      paint.fillStyle = colour(rises ? "green" : "red");
      paint.fillRect(x - Math.floor(paint.lineWidth / 2), high, paint.lineWidth, low - high);
      paint.fillRect(left, top, width, Math.max(paint.lineWidth, bottom - top));
      // A rising candle is hollow, so that colour is not the only difference.
      const inner = width - 2 * paint.lineWidth;
      if (rises && inner > 0 && bottom - top > 2 * paint.lineWidth) {
        paint.fillStyle = colour("paper");
        paint.fillRect(left + paint.lineWidth, top + paint.lineWidth, inner, bottom - top - 2 * paint.lineWidth);
      }
    });
    paint.restore();
  },

  drawSignals(plot) {
    const { ctx: paint } = plot;
    const scale = devicePixelRatio || 1;
    paint.save();
    paint.fillStyle = colour("violet");
    this.visible().forEach((candle, place) => {
      const found = this.ends.get(candle.end) ?? [];
      const x = plot.valToPos(place, "x", true);
      for (const below of [false, true]) {
        found.filter((signal) => isBelow(signal.kind) === below).forEach((_, nth) => {
          const away = (below ? 1 : -1) * scale;
          const tip = plot.valToPos(Number(below ? candle.low : candle.high), "y", true) + away * (5 + 8 * nth);
          paint.beginPath();
          paint.moveTo(x - 4 * scale, tip);
          paint.lineTo(x + 4 * scale, tip);
          paint.lineTo(x, tip + away * 6);
          paint.fill();
        });
      }
    });
    paint.restore();
  },

  point(at) {
    if (at === this.at) return;
    this.at = at;
    this.tell();
  },

  /** Says the candle at the cursor, or the newest one. */
  tell() {
    const candles = this.visible();
    const candle = candles[this.at ?? candles.length - 1];
    const parts = candle ? this.words(candle) : [];
    list(byId("readout"), parts.length > 0 ? parts : [["No closed bar yet", ""]], ([name]) => name, ([name]) => {
      const text = make("b");
      return { node: make("span", "", name ? `${name} ` : "", text), show: ([, words]) => write(text, words) };
    });
    if (!this.tip) return;
    const found = candle && this.at !== null ? this.ends.get(candle.end) ?? [] : [];
    hide(this.tip, found.length === 0);
    if (found.length === 0) return;
    this.tip.replaceChildren(...found.map((signal) => make("div", "", make("b", "alert-kind", plain(signal.kind)), ` at ${value(signal.value)}, bar's end ${clock(signal.end)}`)));
    const plot = this.plots[0].plot;
    const x = plot.bbox.left / devicePixelRatio + plot.valToPos(this.at, "x");
    const isRight = x > byId("candles").clientWidth / 2;
    Object.assign(this.tip.style, { top: "10px", left: isRight ? "" : `${x + 14}px`, right: isRight ? `${byId("candles").clientWidth - x + 14}px` : "" });
  },

  words(candle) {
    const chosen = this.offered().filter(([name]) => this.chosen.has(name)).flatMap(([, , columns]) => Object.keys(columns));
    return [
      ["", `${dated(candle.end)} UTC`], ["open", decimal(candle.open)], ["high", decimal(candle.high)], ["low", decimal(candle.low)],
      ["close", decimal(candle.close)], ["volume", decimal(candle.volume)], ["trades", whole(candle.trades)],
      ...chosen.map((name) => [plain(name).replaceAll("_", " "), isKnown(candle.indicators[name]) ? value(candle.indicators[name]) : "none yet"]),
    ];
  },

  table() {
    const details = byId("candle-table");
    if (!details.open) return;
    const newest = (this.data?.candles ?? []).slice(-30).reverse();
    list(details.querySelector("tbody"), newest, (candle) => `${candle.start} ${candle.end} ${candle.trades}`, (candle) => {
      const prices = [candle.open, candle.high, candle.low, candle.close, candle.volume].map((text) => make("td", "", decimal(text)));
      const alerts = make("td");
      return {
        node: make("tr", "", make("td", "", dated(candle.end)), ...prices, make("td", "", whole(candle.trades)), alerts),
        show: () => write(alerts, (this.ends.get(candle.end) ?? []).map((signal) => plain(signal.kind)).join(", ")),
      };
    });
  },

  note() {
    const left = stream.snapshot?.symbols_left_out ?? 0;
    const words = this.trouble || (left > 0 ? `The list leaves out ${counted(left, "symbol", "symbols")}; type a name to see one of them.` : "");
    write(byId("choice-note"), words);
  },

  /** Moves the cursor along the candles, and says the one it comes to. */
  move(by) {
    const candles = this.visible();
    if (candles.length === 0) return;
    const at = Math.max(0, Math.min(candles.length - 1, this.at === null ? candles.length - 1 : this.at + by));
    const { plot } = this.plots[0];
    plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.valToPos(Number(candles[at].close), "y") });
    const found = (this.ends.get(candles[at].end) ?? []).map((signal) => plain(signal.kind));
    write(byId("candle-spoken"), [...this.words(candles[at]).map((pair) => pair.join(" ")), ...found].join(", "));
  },
};

/** Labels of an axis, with as many places as tell them apart. */
function labels(splits) {
  const step = splits.length > 1 ? Math.abs(splits[1] - splits[0]) : 1;
  if (step >= 1000) return splits.map(compact);
  let places = 0;
  while (places < 8 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6) places += 1;
  return splits.map((split) => fixed(split, places));
}

function choose(symbol, bar = null) {
  const known = stream.snapshot?.symbols.find((one) => one.symbol === symbol);
  const bars = known?.bars ?? [...byId("bar").options].map((option) => option.value);
  const next = bars.includes(bar ?? market.bar) ? bar ?? market.bar : bars[0] ?? null;
  if (market.symbol !== symbol || market.bar !== next) Object.assign(market, { data: null, symbol, bar: next, trouble: "", refusals: 0 });
  store("symbol", symbol);
  if (next) store("bar", next);
  const field = byId("symbol");
  if (field.value !== symbol) field.value = symbol;
  showBars(bars);
  market.build();
  market.fetch();
}

function showBars(bars) {
  list(byId("bar"), bars, (bar) => bar, (bar) => {
    const node = make("option", "", plain(bar));
    node.value = bar;
    return { node };
  });
  if (market.bar && byId("bar").value !== market.bar) byId("bar").value = market.bar;
}

let offeredSymbols = "";
function showMarket({ symbols }) {
  const names = symbols.map((one) => one.symbol).sort();
  const mark = JSON.stringify(names);
  if (mark !== offeredSymbols) {
    offeredSymbols = mark;
    list(byId("symbols"), names, (name) => name, (name) => {
      const node = make("option");
      node.value = name;
      return { node };
    });
  }
  const known = symbols.find((one) => one.symbol === market.symbol);
  if (known) {
    showBars(known.bars);
    if (!market.bar || byId("symbol").value === "" && document.activeElement !== byId("symbol")) choose(known.symbol);
  } else if (!market.data && market.refusals === 0 && symbols.length > 0) {
    // A symbol that was remembered may be of another log.
    choose(symbols[0].symbol);
  }
  market.note();
}

/** Takes what the reader typed: a name, or a part that only one name has. */
function chooseTyped() {
  const typed = byId("symbol").value;
  const names = (stream.snapshot?.symbols ?? []).map((one) => one.symbol);
  if (typed === "" || typed === market.symbol) return;
  const parts = names.filter((name) => name.toLowerCase().includes(typed.toLowerCase()));
  const found = names.find((name) => name === typed) ?? (parts.length === 1 ? parts[0] : null);
  if (found !== null) choose(found);
  else if (parts.length === 0 && stream.snapshot?.symbols_left_out > 0) choose(typed);
  else {
    market.trouble = parts.length === 0 ? "No symbol with candles has this in its name." : `${whole(parts.length)} symbols have this in their names: choose one.`;
    market.note();
  }
}

// Explanations --------------------------------------------------------------------------------------------------------

let explaining = null;
/** Shows the explanation that the address names, as in `#why=entry=0:123`. */
async function explain() {
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
    write(byId("why-text"), text.split("\n").map((line) => plain(line.replace(/\r$/, "").replaceAll("\t", "    "))).join("\n"));
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
  try { return decodeURIComponent(text); } catch { return text; }
}
function forgetWhy() {
  explaining?.abort();
  if (location.hash.startsWith("#why=")) history.replaceState(null, "", location.pathname + location.search);
}

// The page ------------------------------------------------------------------------------------------------------------

function show(snapshot) {
  byId("content").classList.remove("waiting");
  showAge();
  showState(snapshot);
  showVerified(snapshot);
  showTiles(snapshot);
  charts.forEach((chart) => chart.show(snapshot.history));
  showMarket(snapshot);
  showLanes(snapshot);
  showFeeds(snapshot);
  showStores(snapshot);
  showDevices(snapshot);
  showPartitions(snapshot);
}

function togglePause() {
  isPaused = !isPaused;
  attribute(byId("pause"), "aria-pressed", String(isPaused));
  feeds.forEach((feed) => feed.show());
}

byId("pause").addEventListener("click", togglePause);
byId("theme").addEventListener("click", () => {
  const theme = THEMES[(THEMES.indexOf(stored("colours") ?? "system") + 1) % THEMES.length];
  store("colours", theme);
  useTheme(theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => useTheme(stored("colours") ?? "system"));
byId("filter").addEventListener("input", (event) => {
  wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  decisions.show(true);
});
byId("alerts-only").checked = alertsOnly;
byId("alerts-only").addEventListener("change", (event) => {
  alertsOnly = event.target.checked;
  store("alerts", alertsOnly ? "1" : "0");
  signals.show(true);
});
byId("choice").addEventListener("submit", (event) => { event.preventDefault(); chooseTyped(); });
byId("symbol").addEventListener("change", chooseTyped);
byId("bar").addEventListener("change", (event) => choose(market.symbol, event.target.value));
byId("candle-table").addEventListener("toggle", () => market.table());
byId("candles").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e6, End: 1e6 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  market.move(by);
});
byId("candles").addEventListener("blur", () => market.plots.forEach(({ plot }) => plot.setCursor({ left: -10, top: -10 })));
byId("why").addEventListener("close", forgetWhy);
byId("why-close").addEventListener("click", () => byId("why").close());
byId("why-again").addEventListener("click", explain);
byId("why-copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(byId("why-text").textContent).then(() => write(byId("why-note"), "copied"), () => write(byId("why-note"), "the browser refuses to copy"));
});
addEventListener("hashchange", explain);
addEventListener("resize", () => market.fill());
document.addEventListener("visibilitychange", requestShow);

useTheme(THEMES.includes(stored("colours")) ? stored("colours") : "system");
setInterval(showAge, 500);
setInterval(() => { if (market.refusals % 5 === 0) market.fetch(); else market.refusals += 1; }, 1000);
follow();
if (location.hash) explain();
