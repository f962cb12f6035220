// Numbers, times and names as the page says them. Pure functions.

export const UNKNOWN = "unknown";
export const THIN = "\u202f";
export const isKnown = (number) => typeof number === "number" && Number.isFinite(number);

/** A text without characters that hide or turn others: each is shown by its code. */
export const plain = (text) =>
  String(text ?? "").replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, THIN);
export const whole = (number) =>
  isKnown(number) ? (number < 0 ? "−" : "") + grouped(Math.abs(Math.round(number)).toString()) : UNKNOWN;
export const fixed = (number, places) => {
  const [before, after] = Math.abs(number).toFixed(places).split(".");
  return (number < 0 ? "−" : "") + grouped(before) + (after ? `.${after}` : "");
};
export const rate = (number) =>
  isKnown(number) && Math.abs(number) < 100 && number % 1 ? fixed(number, 1) : whole(number);
/** A number of any size, to about six digits. */
export const value = (number) => {
  if (!isKnown(number)) return UNKNOWN;
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-4 || size >= 1e12)) return number.toExponential(3).replace("-", "−");
  return fixed(number, size >= 1000 ? 2 : size >= 1 ? 4 : 6);
};
/** Likewise without zeros at its end, for running text. */
export const amount = (number) =>
  value(number)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
/** A decimal of the log, to its last digit. */
export const decimal = (text) => {
  const parts = /^(-?)(\d+)(\.\d+)?$/.exec(text);
  return parts ? (parts[1] && "−") + grouped(parts[2]) + (parts[3] ?? "") : plain(text);
};
export const compact = (number) => {
  const size = Math.abs(number);
  for (const [unit, of] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ]) {
    if (size >= of) return `${+(number / of).toPrecision(3)}${THIN}${unit}`;
  }
  return String(+number.toPrecision(3));
};
/** Milliseconds as a number and its unit. */
export const time = (ms) => {
  if (!isKnown(ms)) return [UNKNOWN, ""];
  if (ms >= 60_000) return [whole(ms / 1000), "s"];
  if (ms >= 1000) return [fixed(ms / 1000, 2), "s"];
  return [fixed(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0), "ms"];
};
export const timeWords = (ms) => time(ms).filter(Boolean).join(THIN);
export const bytes = (count) => {
  if (!isKnown(count)) return UNKNOWN;
  const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  for (; count >= 1024 && step < steps.length - 1; step += 1) count /= 1024;
  return `${fixed(count, step > 0 && count < 100 ? 1 : 0)}${THIN}${steps[step]}`;
};
export const counted = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;
/** The time of day of an ISO time, with milliseconds unless they are 0. */
export const clock = (iso, always = false) => {
  const found = /T(\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?/.exec(iso ?? "");
  if (!found) return iso ? plain(iso) : UNKNOWN;
  const milliseconds = (found[2] ?? "").padEnd(3, "0");
  return always || milliseconds !== "000" ? `${found[1]}.${milliseconds}` : found[1];
};
export const dated = (iso) =>
  /^\d{4}-\d\d-\d\dT/.test(iso ?? "") ? `${iso.slice(0, 10)} ${clock(iso)}` : plain(iso) || UNKNOWN;
export const grade = (level) => ({ ok: "good", degraded: "unknown", down: "bad" })[level] ?? "unknown";
export const SIGNS = { good: "✓", unknown: "▲", bad: "✕" };
