// Lists that fall fast: decisions, signals, risk requests.

import { symbolButton } from "./market.js";
import {
  attribute,
  byId,
  hide,
  link,
  list,
  make,
  named,
  shade,
  shownIn,
  store,
  stored,
  title,
  write,
} from "./nodes.js";
import { UNKNOWN, amount, clock, dated, isKnown, plain, timeWords, value, whole } from "./text.js";

const KEPT = 500;
const SHOWN = 60;

let isPaused = false;
const feeds = [];

/** A list of the newest items. It is held while paused, and while it has the pointer, the focus or a selection. */
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
      shownIn.get(this.body)?.forEach((view, key) => {
        const item = held.find((one) => this.keyOf(one) === key);
        if (item) view.show?.(item);
      });
      return;
    }
    list(this.body, fitting, this.keyOf, this.create);
    this.shown = fitting.map(this.keyOf);
    hide(this.none, fitting.length > 0);
    if (fitting.length === 0)
      write(this.none, this.kept.size === 0 ? this.empty : "Nothing fits among what this page has seen.");
  }
}

/** Opens an explanation by a click anywhere on an item, unless it is on a control or the reader selects text. */
const opens = (node, asked) =>
  node.addEventListener("click", (event) => {
    if (!event.target.closest("a, button") && getSelection().isCollapsed) location.hash = `why=${asked}`;
  });

/** `Dispatch: batch 4 …` with its first word set off. */
const worded = (text) => {
  const found = /^([A-Z]\w*): ([^]*)$/.exec(text);
  if (!found) return [plain(text)];
  const tone = /^(Fence|LaneLost|Reject|Expire|Shed)/.test(found[1])
    ? "d-bad"
    : /^(Pause|Breaker|Restore|FellBack|Drift|Headroom)/.test(found[1])
      ? "d-warn"
      : /^(Dispatch|Place|RunSlice|Admit|Finish)/.test(found[1])
        ? "d-calm"
        : "";
  return [make("b", tone, found[1]), ` ${plain(found[2])}`];
};

let wanted = [];
const decisions = new Feed(
  "decisions",
  (entry) => entry.place,
  (entry) => {
    const when = link(clock(entry.at, true), `entry=${entry.place}`);
    when.className = "when";
    when.title = `${plain(entry.at)}, entry ${plain(entry.place)}: the whole explanation`;
    const reasons = entry.reasons.map((reason) => make("li", "", ...worded(reason)));
    const node = make(
      "li",
      "entry",
      when,
      make("p", "input", ...worded(entry.words)),
      make("ul", "reasons", ...reasons),
    );
    opens(node, `entry=${entry.place}`);
    return { node };
  },
  (entry) => {
    if (wanted.length === 0) return true;
    entry.searched ??= [entry.place, entry.words, ...entry.reasons].join("\n").toLowerCase();
    return wanted.every((word) => entry.searched.includes(word));
  },
  "No decision so far.",
);

let alertsOnly = stored("alerts") === "1";
const signals = new Feed(
  "signals",
  (signal) => signal.place,
  (signal) => {
    const [date, of] = dated(signal.end).split(" ");
    const end = link(make("span", "", make("span", "date", `${date} `), of ?? ""), `signal=${signal.place}`);
    end.title = `${plain(signal.end)}, signal ${plain(signal.place)}: the whole explanation`;
    const kind = make("td", signal.kind === "BAR" ? "quiet-word" : "alert-kind", plain(signal.kind));
    const node = make(
      "tr",
      "open",
      make("td", "", end),
      make("td", "", symbolButton(signal.symbol)),
      make("td", "", named(signal.bar)),
      kind,
      make("td", "number", value(signal.value)),
    );
    opens(node, `signal=${signal.place}`);
    return { node };
  },
  (signal) => !alertsOnly || signal.kind !== "BAR",
  "No signal so far.",
);

const isAnswer = (risk) => risk.outcome !== "asked";
const risk = new Feed(
  "risk",
  (pair) => pair.id,
  (pair) => {
    const id = link(named(pair.id, "cut"), `request=${encodeURIComponent(pair.id)}`);
    const [kind, who, outcome, took, answer] = ["", "", "", "number", "wrap"].map((name) => make("td", name));
    const node = make("tr", "open", make("td", "", id), kind, who, outcome, took, answer);
    opens(node, `request=${encodeURIComponent(pair.id)}`);
    return {
      node,
      show: ({ asked, answered }) => {
        const fields = { ...asked?.fields, ...answered?.fields };
        write(kind, plain((asked ?? answered).kind));
        list(
          who,
          [fields.tenant ?? UNKNOWN],
          (tenant) => tenant,
          (tenant) => ({ node: named(tenant, "cut") }),
        );
        title(who, `${plain(fields.tenant)}, class ${plain(fields.class).toLowerCase()}`);
        const sign = answered && isFailed(answered) ? "✕" : "✓";
        write(outcome, answered ? `${sign} ${plain(answered.outcome)}` : "not yet answered");
        shade(outcome, !answered ? "quiet-word" : isFailed(answered) ? "bad-word" : "good-word");
        write(took, answered ? timeWords((fields.finished_ns - fields.received_ns) / 1e6) : "");
        write(answer, answered ? summed(fields.outcome) : "");
      },
    };
  },
  () => true,
  "No risk request so far.",
);
// The newest records come first, so the asking one may follow its answer.
const paired = (before, item) => ({ id: item.id, ...before, [isAnswer(item) ? "answered" : "asked"]: item });

/** The one branch of a union: its fields. */
const branchOf = (union) => Object.values(union ?? {})[0] ?? {};
const isFailed = (answered) => /Error$/.test(answered.outcome);

/** The length of a list, of which a snapshot has the begin and `and 12 more`. */
function lengthOf(items) {
  const more = /^and (\d+) more$/.exec(items.at(-1));
  return whole(more ? items.length - 1 + Number(more[1]) : items.length);
}

/** The answer of a risk result in a line: its numbers by name, then its lists, each with its first item. */
function summed(outcome) {
  const branch = branchOf(outcome);
  if (branch.message !== undefined) {
    return [branch.code, branch.field, branch.message].filter(Boolean).map(plain).join(": ");
  }
  const said = (name) => plain(name).replaceAll("_", " ");
  const numbers = (fields) => {
    const found = Object.entries(fields ?? {}).filter(([, number]) => isKnown(number));
    const first = found.filter(([name]) => /^(price|value)/.test(name));
    return [...new Set([...first, ...found])].slice(0, 4).map(([name, number]) => `${said(name)} ${amount(number)}`);
  };
  const lists = Object.entries(branch).filter(([, items]) => Array.isArray(items) && items.length > 0);
  const parts = lists.map(([name, items]) => {
    const first = isKnown(items[0]) ? amount(items[0]) : numbers(items[0]).join(", ");
    return `${lengthOf(items)} ${said(name)}${first ? `, the first: ${first}` : ""}`;
  });
  return [...numbers(branch), ...parts].join(" · ") || UNKNOWN;
}

export function gather(snapshot) {
  decisions.gather(snapshot.decisions);
  signals.gather(snapshot.signals);
  risk.gather(
    snapshot.risk.map((item) => ({ ...item })),
    paired,
  );
}

export function showFeeds(snapshot) {
  feeds.forEach((feed) => feed.show());
  const notes = [
    ["decisions-note", decisions, "entries with decisions"],
    ["signals-note", signals, "signals"],
    ["risk-note", risk, "requests"],
  ];
  for (const [id, feed, many] of notes) {
    const words = `newest ${whole(feed.shown.length)} of the last ${whole(feed.kept.size)} ${many} seen here`;
    write(byId(id), feed.kept.size > 0 ? words : "");
  }
  list(
    byId("kinds"),
    Object.entries(snapshot.signals_by_kind),
    ([kind]) => kind,
    ([kind]) => {
      const count = make("b");
      const node = make("span", "", `${plain(kind)} `, count);
      node.title = "Signals of this kind, as far as this page's server has read them";
      return { node, show: ([, number]) => write(count, whole(number)) };
    },
  );
}

function togglePause() {
  isPaused = !isPaused;
  attribute(byId("pause"), "aria-pressed", String(isPaused));
  feeds.forEach((feed) => feed.show());
}

byId("pause").addEventListener("click", togglePause);
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
