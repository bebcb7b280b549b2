/** Building filters by clicking. The grammar is docs/filters.md; checking is left to the server. */

/** A text as a string of the language. */
export function quote(text: string): string {
  let out = '"';
  for (const c of text) {
    const code = c.codePointAt(0) ?? 0;
    if (c === '"' || c === "\\") out += `\\${c}`;
    else if (code < 32 || code === 127) out += `\\x${code.toString(16).padStart(2, "0")}`;
    else if (code > 127 && code < 160) out += `\\xc2\\x${code.toString(16)}`; // bytes, as in UTF-8
    else out += c;
  }
  return `${out}"`;
}

/** Joins conditions; "" stands for everything. */
export function both(a: string, b: string): string {
  if (a.trim() === "") return b;
  if (b.trim() === "") return a;
  return `${a}; ${b}`;
}

/** A filter without one of its clauses (as the server lists them). */
export function without(clauses: readonly string[], views: string, index: number): string {
  const rest = clauses.filter((_, i) => i !== index).map((c) => (needsParentheses(c) ? `(${c})` : c));
  return both(rest.join(" and "), views);
}

function needsParentheses(clause: string): boolean {
  return /\bor\b/.test(clause.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\/(?:[^/\\]|\\.)*\//g, "//"));
}

/** The hide and collapse clauses of a canonical text, which stand outside of the conditions. */
export function viewsOf(canonical: string): string {
  return splitTop(canonical)
    .filter((c) => /^(hide|collapse)\b/.test(c))
    .join("; ");
}

/** Splits at "; " and " and " outside of quotes, regular expressions and parentheses. */
export function splitTop(text: string): string[] {
  const out: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"' || (c === "/" && /[\s~(]$|^$/.test(text.slice(0, i)))) {
      for (i++; i < text.length && text[i] !== c; i++) if (text[i] === "\\") i++;
    } else if (c === "(") depth++;
    else if (c === ")") depth--;
    else if (depth === 0 && c === ";") {
      out.push(text.slice(from, i).trim());
      from = i + 1;
    } else if (depth === 0 && text.startsWith(" and ", i)) {
      out.push(text.slice(from, i).trim());
      from = i + 5;
      i += 4;
    }
  }
  out.push(text.slice(from).trim());
  return out.filter((c) => c !== "");
}

/** Nanoseconds as a time of the language. */
export function time(ns: number): string {
  const x = Math.round(ns);
  for (const [unit, scale] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]] as const) {
    if (x % (scale / 1000) === 0 && x >= scale) return `${x / scale}${unit}`;
  }
  return `${x}ns`;
}

export interface Condition {
  name: string;
  /** What is asked for, in order. */
  fields: { label: string; kind: "text" | "choice"; choices?: string[]; placeholder?: string }[];
  make: (values: string[]) => string;
}

const places = ["function", "file", "module", "line"];
const matches = ["equals", "contains", "glob", "regex"];

function pattern(subject: string, match: string, text: string): string {
  const what = subject === "function" ? "" : `${subject} `;
  if (match === "regex") return `${what}/${text.replace(/\//g, "\\/")}/`;
  return `${what}${match === "contains" ? "~ " : match === "glob" ? "glob " : ""}${quote(text)}`;
}

function when(verb: string): Condition["make"] {
  return ([test, a]) => `${verb} ${test === "at or before" ? "<=" : test === "at or after" ? ">=" : "in"} ${a ?? ""}`;
}

const timeFields: Condition["fields"] = [
  { label: "when", kind: "choice", choices: ["at or before", "at or after", "between"] },
  { label: "time", kind: "text", placeholder: "1.5s, end-5s, 10%, 1s..2s" },
];

/** V6 to V13 and beyond. */
export const CONDITIONS: Condition[] = [
  { name: "allocated", fields: timeFields, make: when("allocated") },
  {
    name: "live",
    fields: [{ label: "at or in", kind: "text", placeholder: "peak, end, 3.5s, 1s..2s" }],
    make: ([a]) => (a?.includes("..") ? `live in ${a}` : `live at ${a ?? ""}`),
  },
  { name: "collected", fields: timeFields, make: when("collected") },
  { name: "never collected", fields: [], make: () => "not collected" },
  {
    name: "size",
    fields: [
      { label: "is", kind: "choice", choices: ["at least", "at most", "between"] },
      { label: "size", kind: "text", placeholder: "4kB, 100B, 12w, 16B..64B" },
    ],
    make: ([test, a]) => `size ${test === "at least" ? ">=" : test === "at most" ? "<=" : "in"} ${a ?? ""}`,
  },
  {
    name: "lifetime",
    fields: [
      { label: "is", kind: "choice", choices: ["at most", "at least", "between"] },
      { label: "time", kind: "text", placeholder: "10ms, 1s, 1ms..5ms" },
    ],
    make: ([test, a]) => `lifetime ${test === "at least" ? ">=" : test === "at most" ? "<=" : "in"} ${a ?? ""}`,
  },
  {
    name: "inside a call of",
    fields: [
      { label: "what", kind: "choice", choices: places },
      { label: "how", kind: "choice", choices: matches },
      { label: "name", kind: "text", placeholder: "Parser.run" },
    ],
    make: ([what, how, name]) => `inside ${pattern(what ?? "function", how ?? "equals", name ?? "")}`,
  },
  {
    name: "not inside a call of",
    fields: [
      { label: "what", kind: "choice", choices: places },
      { label: "how", kind: "choice", choices: matches },
      { label: "name", kind: "text", placeholder: "Cache.add" },
    ],
    make: ([what, how, name]) => `not inside ${pattern(what ?? "function", how ?? "equals", name ?? "")}`,
  },
  {
    name: "allocated by",
    fields: [
      { label: "what", kind: "choice", choices: places },
      { label: "how", kind: "choice", choices: matches },
      { label: "name", kind: "text", placeholder: "List.map" },
    ],
    make: ([what, how, name]) => `site ${pattern(what ?? "function", how ?? "equals", name ?? "")}`,
  },
  {
    name: "heap",
    fields: [
      { label: "is", kind: "choice", choices: ["on", "not on"] },
      { label: "heap", kind: "choice", choices: ["minor", "major", "external", "native"] },
    ],
    make: ([test, heap]) => `source ${test === "not on" ? "!=" : "="} ${heap ?? ""}`,
  },
  { name: "promoted", fields: [{ label: "", kind: "choice", choices: ["yes", "no"] }], make: ([a]) => (a === "no" ? "not promoted" : "promoted") },
  { name: "domain", fields: [{ label: "number", kind: "text", placeholder: "0, 1..7" }], make: ([a]) => `domain in ${a ?? ""}` },
  { name: "thread", fields: [{ label: "name contains", kind: "text", placeholder: "worker" }], make: ([a]) => `thread ~ ${quote(a ?? "")}` },
  {
    name: "hide frames of",
    fields: [
      { label: "what", kind: "choice", choices: places },
      { label: "how", kind: "choice", choices: matches },
      { label: "name", kind: "text", placeholder: "Lwt." },
    ],
    make: ([what, how, name]) => `hide ${pattern(what ?? "function", how ?? "equals", name ?? "")}`,
  },
  {
    name: "collapse module",
    fields: [{ label: "module", kind: "text", placeholder: "Stdlib" }],
    make: ([a]) => `collapse module ${quote(a ?? "")}`,
  },
];

export const PRESETS: { name: string; filter: string }[] = [
  { name: "Everything", filter: "" },
  { name: "Alive at the end", filter: "not collected" },
  { name: "Alive at the peak", filter: "live at peak" },
  { name: "Promoted", filter: "promoted" },
  { name: "Died young (10 ms)", filter: "lifetime <= 10ms" },
  { name: "Large blocks (1 kB)", filter: "size >= 1kB" },
  { name: "Outside the OCaml heap", filter: "source in external,native" },
  { name: "First half", filter: "allocated <= 50%" },
  { name: "Last half", filter: "allocated >= 50%" },
];
