/** Small pieces that all views use. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Estimate, Measure, Place } from "../api";
import { error, estimate, explain, percent, safe } from "../format";
import type { Answer } from "./hooks";

export function Value({ e, measure = "bytes" }: { e: Estimate; measure?: Measure }) {
  return (
    <span class="value" title={explain(e, measure)}>
      {estimate(e, measure)} <span class="error">{error(e)}</span>
    </span>
  );
}

export function Name({ place, onClick }: { place: Place; onClick?: () => void }) {
  const text = (
    <>
      <span class="name">{safe(place.name, 300)}</span>
      {place.file && place.file !== place.name && (
        <span class="file">
          {safe(place.file, 200)}
          {place.line > 0 && `:${place.line}`}
        </span>
      )}
    </>
  );
  return onClick ? (
    <button class="link place" onClick={onClick} title={safe(place.name)}>
      {text}
    </button>
  ) : (
    <span class="place" title={safe(place.name)}>
      {text}
    </span>
  );
}

/** What stands in the place of data that is not there. The height stays the same. */
export function Waiting<T>({ answer, children, height = 200 }: { answer: Answer<T>; children: (data: T) => ComponentChildren; height?: number }) {
  if (answer.error)
    return (
      <div class="trouble" role="alert" style={{ minHeight: `${height}px` }}>
        {answer.error.message}
      </div>
    );
  if (answer.data === null)
    return (
      <div class="busy" aria-busy="true" style={{ minHeight: `${height}px` }}>
        <span class="spinner" aria-hidden="true" /> computing…
      </div>
    );
  return <div class={answer.busy ? "stale" : ""}>{children(answer.data)}</div>;
}

export interface Column<R> {
  name: string;
  title?: string;
  cell: (row: R) => ComponentChildren;
  text: (row: R) => string;
  number?: (row: R) => number;
  wide?: boolean;
}

/** Copies rows as CSV. */
export function csv<R>(columns: Column<R>[], rows: R[]): string {
  const quote = (t: string) => (/[",\n\r]/.test(t) || /^[=+\-@\t]/.test(t) ? `"${/^[=+\-@\t]/.test(t) ? "'" : ""}${t.replace(/"/g, '""')}"` : t);
  const lines = [columns.map((c) => quote(c.name)).join(",")];
  for (const row of rows) lines.push(columns.map((c) => (c.number ? String(c.number(row)) : quote(c.text(row)))).join(","));
  return `${lines.join("\n")}\n`;
}

export function Table<R>(props: {
  label: string;
  columns: Column<R>[];
  rows: R[];
  more?: number;
  expand?: (row: R) => ComponentChildren;
  sort?: { column: number; falling: boolean };
}) {
  const [sort, setSort] = useState(props.sort ?? { column: -1, falling: true });
  const [open, setOpen] = useState<Set<number>>(new Set());
  const column = props.columns[sort.column];
  const order = props.rows.map((_, i) => i);
  if (column)
    order.sort((x, y) => {
      const a = props.rows[x] as R;
      const b = props.rows[y] as R;
      const d = column.number ? column.number(a) - column.number(b) : column.text(a).localeCompare(column.text(b));
      return sort.falling ? -d : d;
    });
  const copy = () => void navigator.clipboard?.writeText(csv(props.columns, order.map((i) => props.rows[i] as R)));
  return (
    <div class="table">
      <table aria-label={props.label}>
        <thead>
          <tr>
            {props.columns.map((c, i) => (
              <th
                scope="col"
                class={c.number ? "right" : ""}
                aria-sort={sort.column === i ? (sort.falling ? "descending" : "ascending") : "none"}
              >
                <button
                  title={c.title ?? `sort by ${c.name}`}
                  onClick={() => setSort({ column: i, falling: sort.column === i ? !sort.falling : c.number !== undefined })}
                >
                  {c.name}
                  <span aria-hidden="true">{sort.column === i ? (sort.falling ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.map((i) => {
            const row = props.rows[i] as R;
            const isOpen = open.has(i);
            return (
              <>
                <tr key={i} class={isOpen ? "open" : ""}>
                  {props.columns.map((c, k) => (
                    <td class={`${c.number ? "right" : ""} ${c.wide ? "wide" : ""}`}>
                      {props.expand && k === props.columns.length - 1 && (
                        <button
                          class="expand"
                          aria-expanded={isOpen}
                          aria-label={isOpen ? "close" : "open"}
                          onClick={() => {
                            const next = new Set(open);
                            if (isOpen) next.delete(i);
                            else next.add(i);
                            setOpen(next);
                          }}
                        >
                          {isOpen ? "▾" : "▸"}
                        </button>
                      )}
                      {c.cell(row)}
                    </td>
                  ))}
                </tr>
                {isOpen && props.expand && (
                  <tr class="inside" key={`${i}x`}>
                    <td colSpan={props.columns.length}>{props.expand(row)}</td>
                  </tr>
                )}
              </>
            );
          })}
        </tbody>
      </table>
      <p class="under">
        {props.rows.length === 0 && "nothing fits what was asked for "}
        {props.more ? `and ${props.more} more ` : ""}
        {props.rows.length > 0 && (
          <button class="link" onClick={copy}>
            copy as CSV
          </button>
        )}
      </p>
    </div>
  );
}

export function Share({ part, whole }: { part: number; whole: number }) {
  return (
    <span class="share">
      <meter min={0} max={1} value={whole > 0 ? Math.min(1, part / whole) : 0} aria-hidden="true" />
      <span>{percent(part, whole)}</span>
    </span>
  );
}

export function Choice(props: { label: string; value: string; options: [string, string][]; onChange: (value: string) => void; hideLabel?: boolean }) {
  return (
    <label class="choice">
      <span class={props.hideLabel ? "hidden" : ""}>{props.label}</span>
      <select value={props.value} onChange={(e) => props.onChange(e.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
        {!props.options.some(([value]) => value === props.value) && <option value={props.value}>{props.value}</option>}
      </select>
    </label>
  );
}

export function download(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export const WEIGHTS: [string, string][] = [
  ["allocated", "allocated"],
  ["live@peak", "live at the peak"],
  ["live@end", "live at the end"],
  ["live@own-peak", "live at its own peak"],
  ["promoted", "promoted"],
  ["early", "freed before promotion"],
  ["temporary", "temporary (1 MB)"],
  ["freed", "freed"],
  ["lifetime", "bytes × lifetime"],
  ["objects", "objects"],
  ["samples", "samples"],
];
