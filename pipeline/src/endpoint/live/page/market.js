// Candles of one symbol, with its indicators and alerts.

import { axis, colour, faded, fitted } from "./charts.js";
import { Refused, ask, stream } from "./endpoint.js";
import { button, byId, hide, list, make, named, store, stored, write } from "./nodes.js";
import { STALE_MS } from "./state.js";
import { clock, compact, counted, dated, decimal, fixed, isKnown, plain, value, whole } from "./text.js";

/** Indicators by the place where they are drawn: on the prices, or in a pane with its own scale. */
const INDICATORS = [
  ["SMA", "price", { sma: "blue" }],
  ["EMA", "price", { ema_fast: "amber", ema_slow: "violet" }],
  ["Bollinger", "price", { bollinger_upper: "slate", bollinger_middle: "slate", bollinger_lower: "slate" }],
  ["VWAP", "price", { vwap: "pink" }],
  ["RSI", "pane", { rsi: "violet" }],
  ["MACD", "pane", { macd: "blue", macd_signal: "amber", macd_histogram: "slate" }],
  ["ATR", "pane", { atr: "amber" }],
  ["Momentum", "pane", { momentum: "blue" }],
  ["ROC", "pane", { roc: "blue" }],
  ["z-score", "pane", { zscore: "teal" }],
  ["Volatility", "pane", { realised_volatility: "pink" }],
  ["Stochastic", "pane", { stochastic_k: "blue", stochastic_d: "amber" }],
];
const KNOWN_INDICATORS = new Set(INDICATORS.flatMap(([, , columns]) => Object.keys(columns)));
const isBelow = (kind) => /_(DOWN|LOW)$|OVERSOLD/.test(kind);
const CANDLE_PX = 8;

export const market = {
  symbol: stored("symbol"),
  bar: stored("bar"),
  data: null,
  trouble: "",
  plots: [],
  undo: [],
  at: null,
  refusals: 0,
  chosen: new Set((stored("indicators") ?? "EMA,Bollinger").split(",").filter(Boolean)),

  /** Indicators of which the candles have a value; one that this page does not know gets a pane. */
  offered() {
    const names = new Set((this.data?.candles ?? []).flatMap((candle) => Object.keys(candle.indicators)));
    const known = INDICATORS.filter(([, , columns]) => Object.keys(columns).some((name) => names.has(name)));
    const further = [...names].filter((name) => !KNOWN_INDICATORS.has(name)).sort();
    return [...known, ...further.map((name) => [plain(name), "pane", { [name]: "teal" }])];
  },

  async fetch() {
    if (document.hidden || !this.symbol || !this.bar || performance.now() - (stream.shown ?? -Infinity) > STALE_MS)
      return;
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
    const mark = (one) =>
      one && `${one.symbol}\n${one.bar}\n${one.candles.length}\n${one.candles.at(-1)?.end}\n${one.signals.length}`;
    if (mark(data) === mark(this.data)) return;
    const shape = this.shape();
    this.data = data;
    this.ends = new Map();
    for (const signal of data.signals) this.ends.set(signal.end, [...(this.ends.get(signal.end) ?? []), signal]);
    this.offer();
    if (this.plots.length > 0 && shape === this.shape()) this.fill();
    else this.build();
    this.table();
  },
  shape() {
    return JSON.stringify(this.offered().filter(([name]) => this.chosen.has(name)));
  },

  /** The candles that have room. */
  visible() {
    const room = Math.max(20, Math.floor((byId("candles").clientWidth - 70) / CANDLE_PX));
    return (this.data?.candles ?? []).slice(-room);
  },

  offer() {
    list(
      byId("indicators"),
      this.offered(),
      ([name]) => name,
      ([name, , columns]) => {
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
      },
    );
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
    for (const [name, , columns] of chosen.filter(([, where]) => where === "pane"))
      this.add(host, "pane", name, Object.entries(columns), false);
    this.tip = make("div", "tip");
    this.tip.hidden = true;
    host.append(this.tip);
    this.fill();
  },

  add(host, name, heading, lines, isMain) {
    const place = make("div", name, ...(heading ? [make("span", "name", heading)] : []));
    host.append(place);
    const columns = isMain ? ["open", "high", "low", "close", "volume"] : [];
    const hidden = columns.map((column) => ({
      scale: column === "volume" ? "volume" : "y",
      paths: () => null,
      points: { show: false },
    }));
    const drawn = lines.map(([column, hue]) => ({
      scale: "y",
      stroke: () => colour(hue),
      width: 1.25,
      points: { show: false },
      spanGaps: false,
      ...(column === "macd_histogram"
        ? { paths: uPlot.paths.bars({ size: [0.6, 6] }), fill: () => faded(hue, 0.5), width: 0 }
        : {}),
      ...(column.startsWith("bollinger") ? { dash: column === "bollinger_middle" ? [3, 3] : undefined, width: 1 } : {}),
    }));
    const spaced = (_, least, most) => {
      if (!isKnown(least) || !isKnown(most)) return [0, 1];
      const margin = (most - least || Math.abs(most) || 1) * 0.06;
      // Volumes have the lowest fifth of the prices' chart.
      return [least - margin * (isMain ? 4 : 1), most + margin * (isMain ? 1.6 : 1)];
    };
    const plot = new uPlot(
      {
        width: place.clientWidth || 300,
        height: place.clientHeight || 92,
        legend: { show: false },
        padding: [isMain ? 8 : 6, 4, isMain ? 0 : 4, 0],
        cursor: {
          drag: { x: false, y: false },
          points: { show: false },
          sync: { key: "candles", scales: ["x", null] },
          y: isMain,
        },
        scales: {
          x: { time: false, range: () => [-0.5, Math.max(this.visible().length, 20) - 0.5] },
          y: { range: spaced },
          ...(isMain ? { volume: { range: (_, __, most) => [0, most > 0 ? most * 5 : 1] } } : {}),
        },
        axes: [
          axis(
            isMain
              ? {
                  size: 24,
                  space: 72,
                  incrs: [1, 2, 5, 10, 20, 50, 100],
                  values: (_, splits) => splits.map((at) => (this.visible()[at] ? clock(this.visible()[at].end) : "")),
                }
              : { size: 0, values: () => [] },
          ),
          axis({ size: 62, space: isMain ? 36 : 28, values: (_, splits) => labels(splits) }),
        ],
        series: [{}, ...hidden, ...drawn],
        hooks: {
          ...(isMain ? { drawAxes: [(one) => this.draw(one)], draw: [(one) => this.drawSignals(one)] } : {}),
          setCursor: [
            (one) => {
              if (isMain) this.point(one.cursor.left >= 0 ? one.cursor.idx : null);
            },
          ],
        },
      },
      [[]],
      place,
    );
    this.undo.push(fitted(plot, place), () => plot.destroy());
    this.plots.push({ plot, columns: [...columns, ...lines.map(([column]) => column)], count: columns.length });
  },

  fill() {
    const candles = this.visible();
    for (const { plot, columns, count } of this.plots) {
      const series = columns.map((column, place) =>
        candles.map((candle) => (place < count ? Number(candle[column]) : (candle.indicators[column] ?? null))),
      );
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
      const [top, bottom, high, low, volume] = [
        Math.max(open, closes[place]),
        Math.min(open, closes[place]),
        highs[place],
        lows[place],
      ]
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
        found
          .filter((signal) => isBelow(signal.kind) === below)
          .forEach((_, nth) => {
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
    list(
      byId("readout"),
      parts.length > 0 ? parts : [["No closed bar yet", ""]],
      ([name]) => name,
      ([name]) => {
        const text = make("b");
        return { node: make("span", "", name ? `${name} ` : "", text), show: ([, words]) => write(text, words) };
      },
    );
    if (!this.tip) return;
    const found = candle && this.at !== null ? (this.ends.get(candle.end) ?? []) : [];
    hide(this.tip, found.length === 0);
    if (found.length === 0) return;
    this.tip.replaceChildren(
      ...found.map((signal) =>
        make(
          "div",
          "",
          make("b", "alert-kind", plain(signal.kind)),
          ` at ${value(signal.value)}, bar's end ${clock(signal.end)}`,
        ),
      ),
    );
    const plot = this.plots[0].plot;
    const x = plot.bbox.left / devicePixelRatio + plot.valToPos(this.at, "x");
    const isRight = x > byId("candles").clientWidth / 2;
    Object.assign(this.tip.style, {
      top: "10px",
      left: isRight ? "" : `${x + 14}px`,
      right: isRight ? `${byId("candles").clientWidth - x + 14}px` : "",
    });
  },

  words(candle) {
    const chosen = this.offered()
      .filter(([name]) => this.chosen.has(name))
      .flatMap(([, , columns]) => Object.keys(columns));
    return [
      ["", `${dated(candle.end)} UTC`],
      ["open", decimal(candle.open)],
      ["high", decimal(candle.high)],
      ["low", decimal(candle.low)],
      ["close", decimal(candle.close)],
      ["volume", decimal(candle.volume)],
      ["trades", whole(candle.trades)],
      ...chosen.map((name) => [
        plain(name).replace("bollinger", "band").replaceAll("_", " "),
        isKnown(candle.indicators[name]) ? value(candle.indicators[name]) : "none yet",
      ]),
    ];
  },

  table() {
    const details = byId("candle-table");
    if (!details.open) return;
    const newest = (this.data?.candles ?? []).slice(-30).reverse();
    list(
      details.querySelector("tbody"),
      newest,
      (candle) => `${candle.start} ${candle.end} ${candle.trades}`,
      (candle) => {
        const prices = [candle.open, candle.high, candle.low, candle.close, candle.volume].map((text) =>
          make("td", "", decimal(text)),
        );
        const alerts = make("td");
        return {
          node: make(
            "tr",
            "",
            make("td", "", dated(candle.end)),
            ...prices,
            make("td", "", whole(candle.trades)),
            alerts,
          ),
          show: () => write(alerts, (this.ends.get(candle.end) ?? []).map((signal) => plain(signal.kind)).join(", ")),
        };
      },
    );
  },

  note() {
    const left = stream.snapshot?.symbols_left_out ?? 0;
    const words =
      this.trouble ||
      (left > 0 ? `The list leaves out ${counted(left, "symbol", "symbols")}; type a name to see one of them.` : "");
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
  const next = bars.includes(bar ?? market.bar) ? (bar ?? market.bar) : (bars[0] ?? null);
  if (market.symbol !== symbol || market.bar !== next)
    Object.assign(market, { data: null, symbol, bar: next, trouble: "", refusals: 0 });
  store("symbol", symbol);
  if (next) store("bar", next);
  const field = byId("symbol");
  if (field.value !== symbol) field.value = symbol;
  showBars(bars);
  market.build();
  market.fetch();
}

function showBars(bars) {
  list(
    byId("bar"),
    bars,
    (bar) => bar,
    (bar) => {
      const node = make("option", "", plain(bar));
      node.value = bar;
      return { node };
    },
  );
  if (market.bar && byId("bar").value !== market.bar) byId("bar").value = market.bar;
}

let offeredSymbols = "";
export function showMarket({ symbols }) {
  const names = symbols.map((one) => one.symbol).sort();
  const mark = JSON.stringify(names);
  if (mark !== offeredSymbols) {
    offeredSymbols = mark;
    list(
      byId("symbols"),
      names,
      (name) => name,
      (name) => {
        const node = make("option");
        node.value = name;
        return { node };
      },
    );
  }
  const known = symbols.find((one) => one.symbol === market.symbol);
  if (known) {
    showBars(known.bars);
    if (!market.bar || (byId("symbol").value === "" && document.activeElement !== byId("symbol"))) choose(known.symbol);
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
    market.trouble =
      parts.length === 0
        ? "No symbol with candles has this in its name."
        : `${whole(parts.length)} symbols have this in their names: choose one.`;
    market.note();
  }
}

/** A button that shows a symbol's candles. */
export const symbolButton = (symbol) => {
  const node = button("link cut", named(symbol), (event) => {
    event.stopPropagation();
    choose(symbol);
    byId("h-market").scrollIntoView({ block: "start" });
  });
  node.title = `${plain(symbol)}: show its candles`;
  return node;
};

byId("choice").addEventListener("submit", (event) => {
  event.preventDefault();
  chooseTyped();
});
byId("symbol").addEventListener("change", chooseTyped);
byId("bar").addEventListener("change", (event) => choose(market.symbol, event.target.value));
byId("candle-table").addEventListener("toggle", () => market.table());
addEventListener("resize", () => market.fill());
byId("candles").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e6, End: 1e6 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  market.move(by);
});
byId("candles").addEventListener("blur", () =>
  market.plots.forEach(({ plot }) => plot.setCursor({ left: -10, top: -10 })),
);
