/** What the page shows, kept in the address: every view is a link, back and forward are undo. */

export const VIEWS = ["overview", "timeline", "flame", "tables", "points", "source", "compare"] as const;
export type View = (typeof VIEWS)[number];

export interface State {
  view: View;
  trace: number;
  filter: string;
  weight: string;
  key: string;
  focus: string[];
  /** Flame graph: direction without a focus, order, recursion. */
  dir: "callees" | "callers";
  order: "weight" | "name";
  fold: boolean;
  colour: "module" | "weight";
  /** Timeline. */
  series: string;
  and: string[];
  from: number | null;
  to: number | null;
  wall: boolean;
  /** Tables. */
  by: string;
  search: string;
  /** Source. */
  file: string;
  line: number;
  /** Compare. */
  b: number;
  filterB: string;
  normalise: string;
}

export const DEFAULTS: State = {
  view: "overview",
  trace: 0,
  filter: "",
  weight: "allocated",
  key: "function",
  focus: [],
  dir: "callees",
  order: "weight",
  fold: true,
  colour: "module",
  series: "total",
  and: [],
  from: null,
  to: null,
  wall: false,
  by: "function",
  search: "",
  file: "",
  line: 0,
  b: 0,
  filterB: "",
  normalise: "none",
};

type Key = keyof State;

export function parse(search: string): State {
  const p = new URLSearchParams(search);
  const state: State = { ...DEFAULTS, focus: p.getAll("focus"), and: p.getAll("and") };
  const out = state as unknown as Record<Key, unknown>;
  for (const key of Object.keys(DEFAULTS) as Key[]) {
    const text = p.get(key);
    if (text === null || key === "focus" || key === "and") continue;
    const standard = DEFAULTS[key];
    if (typeof standard === "boolean") out[key] = text === "1";
    else if (typeof standard === "number" || key === "from" || key === "to") {
      const x = Number(text);
      if (Number.isFinite(x)) out[key] = x;
    } else out[key] = text;
  }
  if (!VIEWS.includes(state.view)) state.view = "overview";
  if (state.dir !== "callers") state.dir = "callees";
  if (state.order !== "name") state.order = "weight";
  return state;
}

export function print(state: State): string {
  const p = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS) as Key[]) {
    const value = state[key];
    if (Array.isArray(value)) for (const one of value) p.append(key, one);
    else if (value !== DEFAULTS[key] && value !== null) p.set(key, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  const text = p.toString();
  return text ? `?${text}` : "";
}
