/** Numbers as people read them; the same as the command line's (three digits, 1 kB = 1000 B). */
import type { Estimate, Measure } from "./api";

function three(x: number): string {
  if (x >= 99.95) return x.toFixed(0);
  return x >= 9.995 ? x.toFixed(1) : x.toFixed(2);
}

export function bytes(x: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const sign = x < 0 ? "-" : "";
  let value = Math.abs(x);
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${sign}${unit === 0 ? Math.round(value).toString() : three(value)} ${units[unit]}`;
}

export function count(x: number): string {
  return Math.round(x).toLocaleString("en-US");
}

export function duration(ns: number): string {
  const sign = ns < 0 ? "-" : "";
  const x = Math.abs(ns);
  if (x === 0) return "0 s";
  if (x < 999.5) return `${sign}${Math.round(x)} ns`;
  if (x < 999.5e3) return `${sign}${three(x / 1e3)} µs`;
  if (x < 999.5e6) return `${sign}${three(x / 1e6)} ms`;
  if (x < 120e9) return `${sign}${three(x / 1e9)} s`;
  const seconds = Math.round(x / 1e9);
  if (seconds < 7200) return `${sign}${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${sign}${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  const share = (part / whole) * 100;
  if (share > 0 && share < 0.05) return "<0.1%";
  return share >= 99.95 ? `${share.toFixed(0)}%` : `${share.toFixed(1)}%`;
}

export function value(x: number, measure: Measure): string {
  if (measure === "bytes") return bytes(x);
  if (measure === "byte-seconds") return `${bytes(x)} s`;
  return count(x);
}

/** Half of the interval relative to the value: "±2.1%"; "" when exact or unknown. */
export function error(e: Estimate): string {
  if (e.exact || !e.value || e.low === null || e.high === null) return "";
  const share = Math.max(e.high - e.value, e.value - e.low) / e.value;
  return `±${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

export function estimate(e: Estimate, measure: Measure = "bytes"): string {
  return e.value === null ? `${count(e.samples)} samples` : value(e.value, measure);
}

/** The whole truth about an estimate, for a title. */
export function explain(e: Estimate, measure: Measure = "bytes"): string {
  const from = `${count(e.samples)} samples in ${count(e.rows)} blocks`;
  if (e.value === null || e.low === null || e.high === null) return `${from}; the trace tells no sampling rate`;
  if (e.exact) return `exactly ${value(e.value, measure)}; ${from}`;
  return `95 % interval ${value(e.low, measure)} to ${value(e.high, measure)}; ${from}`;
}

/** The interval of a value that stands for `samples` samples, by the normal approximation. */
export function errorOfSamples(samples: number): string {
  if (samples <= 0) return "";
  const share = 1.96 / Math.sqrt(samples);
  return `±${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

export function wallTime(startRealNs: number, ns: number): string {
  return new Date((startRealNs + ns) / 1e6).toISOString().slice(11, 23);
}

/**
 * Names from traces may hold anything. What could disturb the page's text (controls, direction marks) is
 * shown as its code; very long names are cut in the middle.
 */
export function safe(text: string, most = 2000): string {
  const cut = text.length > most ? `${text.slice(0, most / 2)}…${text.slice(-most / 2)}` : text;
  return cut.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (c) => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}

/** "Stdlib.List.map" -> "List.map" when there is no room. */
export function shortName(name: string, most: number): string {
  const text = safe(name, 400);
  if (text.length <= most) return text;
  if (most < 4) return "";
  const head = Math.ceil((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
