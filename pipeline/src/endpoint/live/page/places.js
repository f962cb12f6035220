// Where the work is: lanes, partitions, stores and devices.

import { colour } from "./charts.js";
import { symbolButton } from "./market.js";
import { attribute, byId, hide, list, make, named, shade, title, write } from "./nodes.js";
import { THIN, UNKNOWN, bytes, counted, dated, fixed, isKnown, plain, rate, whole } from "./text.js";

const STRIP = 60;
/** Greatest length of a lane's lists in a snapshot. */
const LISTED_MAX = 64;
const listed = (items, one, many) =>
  items.length >= LISTED_MAX ? `${LISTED_MAX} or more ${many}` : counted(items.length, one, many);
const busy = new Map();
const LANE_WORDS = {
  working: ["●", "good-word"],
  idle: ["○", "quiet-word"],
  lost: ["✕", "bad-word"],
  drained: ["◌", "warn-word"],
  held: ["‖", "warn-word"],
};
const LANE_ABOUT = {
  working: "has work",
  idle: "waits for work",
  lost: "its device does not answer; its groups moved",
  drained: "an operator took it out of service",
  held: "its breaker keeps work from it",
};

export function showLanes({ at, lanes }) {
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
  const [percent, perSecond, flight, wait] = ["", "rate", "flight", "wait"].map((name) =>
    make("span", `number ${name}`),
  );
  const [perSecondText, flightText, waitText] = [perSecond, flight, wait].map((node) => node.appendChild(make("span")));
  [
    [perSecond, " rows/s"],
    [flight, " in flight"],
    [wait, " waiting"],
  ].forEach(([node, unit]) => node.append(make("span", "small", unit)));
  const summary = make("summary");
  const symbols = make("div", "chips");
  const groups = make("p");
  const details = make("details", "", summary, symbols, groups);
  const node = make(
    "li",
    "lane",
    make("span", "name", `${index} `, make("span", "", "· ", device)),
    state,
    percent,
    strip,
    perSecond,
    flight,
    wait,
    details,
  );
  strip.setAttribute("role", "img");
  [
    [percent, "Share of the last second at work, in percent"],
    [perSecond, "Rows finished per second"],
    [flight, "Rows in flight on the lane"],
    [wait, "Rows that wait for the lane on the host"],
  ].forEach(([of, about]) => title(of, about));
  let latestLane;
  const showInside = () => {
    if (!details.open) return;
    list(
      symbols,
      latestLane.symbols,
      (symbol) => symbol,
      (symbol) => ({ node: symbolButton(symbol) }),
    );
    const more = latestLane.groups.length >= LISTED_MAX ? ` (the first ${LISTED_MAX})` : "";
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
      const places = `${listed(lane.groups, "group", "groups")} · ${listed(lane.symbols, "symbol", "symbols")}`;
      write(
        summary,
        lane.symbols.length > 0
          ? `${places}: ${lane.symbols
              .slice(0, 8)
              .map((symbol) => plain(symbol).slice(0, 40))
              .join(", ")}`
          : places,
      );
      showInside();
      drawStrip(strip, busy.get(lane.lane).cells);
      attribute(strip, "aria-label", `Busy ${Math.round(lane.busy_percent)} % of the last second`);
      title(
        strip,
        `Share of each second at work in the last ${STRIP} s of this page; a lane out of service has its own colour`,
      );
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

/** Forgets what lanes did, for a process that began anew. */
export const forgetLanes = () => busy.clear();

export function showPartitions({ partitions }) {
  list(
    byId("partitions"),
    partitions,
    (one) => one.partition,
    (one) => {
      const cells = ["number", "", "", "number", "number", "number", "number"].map((name) => make("td", name));
      write(cells[0], String(one.partition));
      return {
        node: make("tr", "", ...cells),
        show: ({ is_restoring: restoring, is_paused: paused, watermark, symbols, waiting_rows: waiting, lag }) => {
          shade(cells[1], restoring || paused ? "warn-word" : "");
          const texts = [
            restoring ? "restoring" : paused ? "paused" : "reading",
            watermark ? dated(watermark) : "no tick yet",
            whole(symbols),
            whole(waiting),
            lag ? whole(lag.records) : UNKNOWN,
            lag ? fixed(lag.seconds, 1) : UNKNOWN,
          ];
          texts.forEach((text, place) => write(cells[place + 1], text));
        },
      };
    },
  );
  hide(byId("partitions").closest("section").querySelector(".none"), partitions.length > 0);
}

function gauge(used, total) {
  const node = make("meter");
  Object.assign(node, { min: 0, max: total, value: used });
  return node;
}

export function showStores({ stores, state }) {
  const rows = [
    ["Log", plain(stores.log) || UNKNOWN, "URL of the log"],
    [
      "Answers",
      stores.lost === null ? "✓ it answers" : `✕ ${plain(stores.lost)}`,
      "Whether the log answers",
      stores.lost === null ? "good-word" : "bad-word",
    ],
    [
      "Disk",
      stores.disk_free_bytes === null
        ? "not on a disk of this machine"
        : `${bytes(stores.disk_free_bytes)} free of ${bytes(stores.disk_size_bytes)}`,
      "Free space on the disk of an embedded log",
    ],
    [
      "Hot state",
      stores.hot_state === null ? "in memory, without Redis" : plain(stores.hot_state),
      "Latest values for other programs",
    ],
  ];
  const redis = state.components.find((one) => one.name === "hot_state");
  if (stores.hot_state !== null && redis?.level !== "ok" && redis) rows[3][3] = "warn-word";
  list(
    byId("stores"),
    rows,
    ([name]) => name,
    ([name, , about]) => {
      const text = make("span");
      const of = make("dd", "", text);
      const meter = name === "Disk" ? of.appendChild(gauge(0, 1)) : null;
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
    },
  );
  const meter = byId("stores").querySelector("meter");
  if (isKnown(stores.disk_size_bytes))
    Object.assign(meter, { max: stores.disk_size_bytes, value: stores.disk_size_bytes - stores.disk_free_bytes });
}

export function showDevices({ devices, lanes }) {
  list(byId("devices"), devices, (device) => device.device, deviceView);
  const none = byId("devices").nextElementSibling;
  hide(none, devices.length > 0);
  const isHost = lanes.length > 0 && lanes.every((lane) => lane.device.startsWith("cpu"));
  if (devices.length === 0)
    write(none, isHost ? "No GPU: all lanes are on the processor." : "unknown: no GPU has been measured");
}

function deviceView({ device }) {
  const health = make("span");
  const rows = make("dl");
  const meter = gauge(0, 1);
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
        [
          "Temperature",
          unit(of.temperature_celsius, "°C") +
            (isKnown(of.slowdown_celsius) ? `, slows at ${of.slowdown_celsius}${THIN}°C` : ""),
        ],
        ["Power", unit(of.power_watts, "W", 1)],
        ["Busy", unit(of.utilization_percent, "%")],
        ["SM clock", unit(of.sm_clock_megahertz, "MHz")],
        ["Memory clock", unit(of.memory_clock_megahertz, "MHz")],
        ["Slowed by", of.throttle_reasons ? of.throttle_reasons.map(plain).join(", ") || "nothing" : UNKNOWN],
        ["ECC errors", isKnown(of.ecc_errors_uncorrected) ? whole(of.ecc_errors_uncorrected) : UNKNOWN],
        ["Xid errors", whole(of.xid_errors)],
        ["Lanes", (of.lanes ?? []).map((lane) => lane.lane).join(", ") || "none"],
      ];
      list(
        rows,
        facts,
        ([name]) => name,
        ([name]) => {
          const text = make("dd");
          return { node: make("div", "", make("dt", "", name), text), show: ([, words]) => write(text, words) };
        },
      );
      write(memory, `Memory: ${bytes(of.used_bytes)} used of ${bytes(of.total_bytes)}`);
      hide(meter, !isKnown(of.total_bytes));
      if (isKnown(of.total_bytes)) Object.assign(meter, { max: of.total_bytes, value: of.used_bytes });
    },
  };
}
