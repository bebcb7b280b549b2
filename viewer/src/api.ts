/** The API of docs/api.md: its types, and requests that are cancelled when their view goes. */

export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  samples: number;
  rows: number;
  exact: boolean;
}
export interface Place {
  id: string;
  name: string;
  file: string;
  line: number;
  module: string;
}
export interface Loss {
  kind: string;
  detail: string;
  offset: number;
  bytes: number;
  events: number;
  count: number;
}
export interface Counter {
  name: string;
  unit: string;
  ns: number[];
  values: number[];
}
export interface TraceInfo {
  id: number;
  path: string;
  name: string;
  state: "loading" | "ready" | "failed";
  progress: number;
  error: string;
  revision: number;
  following: boolean;
  changed_on_disk: boolean;
  from_cache: boolean;
  load_seconds: number;
  format: string;
  executable: string;
  args: string[];
  host: string;
  pid: number;
  context: string;
  ocaml_version: string;
  word_bytes: number;
  start_real_ns: number;
  sample_rate: number | null;
  bytes_per_sample: number | null;
  first_ns: number;
  last_ns: number;
  events: number;
  rows: number;
  samples: number;
  bytes: number;
  closed: boolean;
  peak_ns: number;
  peak: Estimate;
  lanes: { id: number; domain: number; thread: number; name: string; native: boolean }[];
  domains: number[];
  marks: { ns: number; text: string }[];
  counters: Counter[];
  memory: Memory | null;
  losses: Loss[];
}
/** What the process' resident memory is made of; a part that the trace does not tell is missing. */
export type Part = "rss" | "file" | "heap" | "native" | "kept" | "unexplained" | "absent";
export type Moment = { ns: number } & Partial<Record<Part, number>>;
export type Memory = {
  first: Moment;
  peak: Moment;
  last: Moment;
  growth: number;
  grew: Part | null;
  verdict: string;
  gaps: number;
  ns: number[];
} & Partial<Record<Part, number[]>>;
export interface Traces {
  version: number;
  statmem: string;
  traces: TraceInfo[];
}
export interface NamedGroup {
  name: string;
  filter: string;
  allocated: Estimate;
  live_end: Estimate;
  peak?: Estimate;
  promoted?: Estimate;
}
export interface PlaceEstimate {
  place: Place;
  estimate: Estimate;
}
export interface Leak {
  place: Place;
  score: number;
  spread: number;
  trend: number;
  live: Estimate;
  allocated: Estimate;
  slope: number | null;
  slope_low: number | null;
  slope_high: number | null;
  first_ns: number;
  last_ns: number;
  mean_age_ns: number;
  generations: number;
  generations_possible: number;
}
export interface Leaks {
  generations: number;
  live: Estimate;
  sites: Leak[];
  more: number;
}
export interface Summary {
  allocated: Estimate;
  live_end: Estimate;
  peak: Estimate;
  peak_ns: number;
  promoted: Estimate;
  early: Estimate;
  temporary: Estimate;
  freed: Estimate;
  objects: Estimate;
  domains: NamedGroup[];
  sources: NamedGroup[];
  sites: { allocated: PlaceEstimate[]; live_end: PlaceEstimate[]; peak: PlaceEstimate[]; temporary: PlaceEstimate[] };
}
export interface Series {
  name: string;
  filter: string;
  live: number[];
  low: number[];
  high: number[];
  allocated: number[];
  freed: number[];
  peak: Estimate;
  peak_ns: number;
}
export interface TimelineData {
  from_ns: number;
  to_ns: number;
  points: number;
  step_ns: number;
  series: Series[];
}
export interface TreeData {
  total: Estimate;
  measure: Measure;
  unit: number | null;
  places: Place[];
  nodes: { place: number[]; depth: number[]; own: number[]; total: number[]; samples: number[] };
  folded: { nodes: number; value: number };
}
export type Measure = "bytes" | "byte-seconds" | "samples" | "objects";
export interface PlaceRow {
  place: Place;
  own: Estimate[];
  total: Estimate[];
}
export interface Places {
  weights: string[];
  totals: Estimate[];
  rows: PlaceRow[];
  more: number;
}
export interface Groups {
  by: string[];
  weights: string[];
  totals: Estimate[];
  rows: { values: { name: string; filter: string; number: number; place?: Place }[]; estimates: Estimate[] }[];
  more: number;
}
export interface Fragments {
  total: Estimate;
  complete: boolean;
  functions: { place: Place; places: Place[]; estimate: Estimate }[];
  paths: { places: Place[]; estimate: Estimate }[];
}
export interface SourceData {
  file: string;
  found: boolean;
  from: string;
  text: string[];
  lines: { line: number; function: string; own: Estimate; total: Estimate }[];
}
export interface CompareRow {
  place: Place;
  own_a: Estimate;
  own_b: Estimate;
  total_a: Estimate;
  total_b: Estimate;
  delta: number;
  significant: boolean;
}
export interface Compare {
  scale: number;
  total_a: Estimate;
  total_b: Estimate;
  delta: number;
  significant: boolean;
  rows: CompareRow[];
  more: number;
}
export interface FilterCheck {
  canonical?: string;
  clauses?: string[];
  error?: string;
  column?: number;
  expected?: string;
}

/** A request that was answered with an error. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly column?: number,
  ) {
    super(message);
  }
}

export type Parameters = Record<string, string | number | readonly string[] | undefined>;

/** `a=1&b=x&b=y`; undefined and empty texts are left out. */
export function encode(parameters: Parameters): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === "") continue;
    if (typeof value === "object") for (const one of value) out.append(name, one);
    else out.append(name, String(value));
  }
  return out.toString();
}

interface Embedded {
  [path: string]: unknown;
}

/** Answers that were saved into the page (`--export-html`), by path and parameters. */
function embedded(): Embedded | undefined {
  const node = document.getElementById("statmem-data");
  return node ? (JSON.parse(node.textContent ?? "{}") as Embedded) : undefined;
}

export async function get<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
  const query = encode(parameters);
  const url = `/api/v1/${path}${query ? `?${query}` : ""}`;
  const saved = embedded();
  if (saved) {
    if (url in saved) return saved[url] as T;
    throw new ApiError("this saved page does not hold that; open the trace with statmem view", 404);
  }
  const response = await fetch(url, { signal: signal ?? null, credentials: "same-origin" });
  if (response.status === 401) throw new ApiError("the address has lost its token; open the one statmem view printed", 401);
  const body = (await response.json()) as { error?: string; column?: number };
  if (!response.ok) throw new ApiError(body.error ?? `status ${response.status}`, response.status, body.column);
  return body as T;
}
