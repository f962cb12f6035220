// Charts of the last two minutes, and what all charts share.

import { attribute, byId, make, write } from "./nodes.js";
import { THIN, UNKNOWN, compact, isKnown, rate } from "./text.js";

const probe = make("span");
probe.hidden = true;
document.body.append(probe);
const colours = new Map();
/** A colour of page.css as the canvas takes it, by the present scheme. */
export function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}
export const faded = (name, share) =>
  colour(name).replace(/^rgba?\(([^)]*)\)$/, (_, parts) => `rgba(${parts.split(",").slice(0, 3).join(",")},${share})`);

/** Reads the colours anew, for another scheme. */
export function recolour() {
  colours.clear();
  charts.forEach((chart) => chart.redraw());
}

const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
export const axis = (more) => ({
  stroke: () => colour("quiet"),
  font,
  grid: { stroke: () => colour("grid"), width: 1 },
  ticks: { show: false },
  gap: 4,
  ...more,
});
/** Keeps a chart as wide as its place. */
export function fitted(chart, host) {
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
  ["waiting_rows", "Rows waiting", "", "amber", "Rows that wait on the host"],
];
const SECONDS = 120;

export const charts = SERIES.map(([key, label, unit, hue, about]) => {
  const facts = make("span", "facts");
  const host = make("div", "plot");
  const figure = make("figure", "", make("figcaption", "", label, facts), host);
  host.setAttribute("role", "img");
  figure.title = about;
  byId("charts").append(figure);
  let values = [];
  const tell = (at) => {
    const words = (number) => (isKnown(number) ? [rate(number), unit].filter(Boolean).join(THIN) : UNKNOWN);
    const short = (number) => (isKnown(number) ? rate(number) : UNKNOWN);
    const known = values.filter(isKnown);
    const ago = values.length - 1 - at;
    const text =
      at === null || values[at] === undefined
        ? `now ${short(values.at(-1))} · most ${known.length > 0 ? words(Math.max(...known)) : UNKNOWN}`
        : `${ago}${THIN}s ago ${words(values[at])}`;
    write(facts, text);
  };
  const plot = new uPlot(
    {
      width: host.clientWidth || 300,
      height: 112,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, sync: { key: "seconds" } },
      scales: {
        x: { time: false, range: [1 - SECONDS, 0] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        axis({
          size: 22,
          splits: () => [-90, -60, -30, 0],
          values: (_, splits) => splits.map((at) => (at === 0 ? "now" : `${at} s`.replace("-", "−"))),
        }),
        axis({ size: 46, space: 28, values: (_, splits) => splits.map(compact) }),
      ],
      series: [{}, { stroke: () => colour(hue), fill: () => faded(hue, 0.14), width: 1.25, points: { show: false } }],
      hooks: { setCursor: [(one) => tell(one.cursor.left >= 0 ? one.cursor.idx : null)] },
    },
    [[], []],
    host,
  );
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
