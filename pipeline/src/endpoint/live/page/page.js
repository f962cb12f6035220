// The live page of a running pipeline: it follows the endpoint, and shows each snapshot in place.
//
//   /live ─► endpoint ─► page ─► state, charts, places, feeds: each changes only what differs
//   /candles.json ─► market
//   /why.txt ─► why

import { charts, recolour } from "./charts.js";
import { follow, stream } from "./endpoint.js";
import { gather, showFeeds } from "./feeds.js";
import { market, showMarket } from "./market.js";
import { byId, store, stored, write } from "./nodes.js";
import { forgetLanes, showDevices, showLanes, showPartitions, showStores } from "./places.js";
import { showAge, showState, showTiles, showTitle, showVerified } from "./state.js";
import "./why.js";

function arrive(snapshot) {
  const before = stream.snapshot;
  const isRestarted =
    before && (before.totals.commits > snapshot.totals.commits || before.totals.ticks > snapshot.totals.ticks);
  if (isRestarted) {
    stream.restarted = snapshot.at;
    forgetLanes();
    // The page is of the version that it was loaded from.
    stream.isOther ||= before.process.version !== snapshot.process.version;
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

const THEMES = ["system", "light", "dark"];
function useTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.colours;
  else document.documentElement.dataset.colours = theme;
  write(byId("theme"), `◐ ${theme}`);
  byId("theme").setAttribute("aria-label", `Colours: ${theme}`);
  recolour();
  market.build();
  if (stream.snapshot) requestShow();
}

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

byId("theme").addEventListener("click", () => {
  const theme = THEMES[(THEMES.indexOf(stored("colours") ?? "system") + 1) % THEMES.length];
  store("colours", theme);
  useTheme(theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => useTheme(stored("colours") ?? "system"));
document.addEventListener("visibilitychange", requestShow);

useTheme(THEMES.includes(stored("colours")) ? stored("colours") : "system");
setInterval(showAge, 500);
setInterval(() => {
  if (market.refusals % 5 === 0) market.fetch();
  else market.refusals += 1;
}, 1000);
follow(arrive, showAge);
