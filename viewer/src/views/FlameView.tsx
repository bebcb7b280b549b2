/** The flame graph with its focus, tools and table twin. */
import { useState } from "preact/hooks";
import type { Place, TreeData } from "../api";
import { both, quote } from "../filters";
import { percent, safe, value } from "../format";
import { Flame, type Selection } from "../flame/Flame";
import { flameSvg } from "../flame/svg";
import { useApi } from "../ui/hooks";
import { Choice, download, Name, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";

/** What an id says, for focuses that come from an address. */
export function placeOfId(id: string): Place {
  const at = id.lastIndexOf("@");
  return at > 0 ? { id, name: id.slice(0, at), file: id.slice(at + 1), line: 0, module: "" } : { id, name: id, file: "", line: 0, module: "" };
}

export function FlameView({ state, info, go }: ViewProps) {
  const [selection, setSelection] = useState<Selection | null>(null);
  const [twin, setTwin] = useState(false);
  const focused = state.focus.length > 0;
  const common = { ...rows(state, info), weight: state.weight, key: state.key, fold: state.fold ? 1 : undefined, order: state.order === "name" ? "name" : undefined, focus: state.focus, min_share: 0.0002 };
  const callees = useApi<TreeData>(focused || state.dir === "callees" ? "tree" : null, common);
  const callers = useApi<TreeData>(focused || state.dir === "callers" ? "tree" : null, { ...common, direction: "callers" });
  const main = focused || state.dir === "callees" ? callees : callers;
  const onFocus = (s: Selection) => {
    // Growing the focus by the way to the box; from the root the box alone.
    const path = s.path.slice(1).map((p) => p.id);
    if (!focused) go({ focus: [s.place.id] });
    else go({ focus: s.side === "callees" ? [...state.focus, ...path] : [...path.reverse(), ...state.focus] });
  };
  const total = main.data?.total.value ?? main.data?.total.samples ?? 0;
  const here = main.data?.nodes.total[0] ?? 0;
  return (
    <>
      <div class="tools">
        <Choice
          label="Show"
          value={state.dir}
          options={[
            ["callees", "callees"],
            ["callers", "callers (by site)"],
          ]}
          onChange={(dir) => go({ dir: dir as "callees" | "callers" })}
        />
        <Choice
          label="Frames"
          value={state.key}
          options={[
            ["function", "functions"],
            ["line", "lines"],
            ["file", "files"],
            ["module", "modules"],
          ]}
          onChange={(key) => go({ key, focus: [] })}
        />
        <Choice
          label="Order"
          value={state.order}
          options={[
            ["weight", "heaviest first"],
            ["name", "by name"],
          ]}
          onChange={(order) => go({ order: order as "weight" | "name" })}
        />
        <Choice
          label="Colour"
          value={state.colour}
          options={[
            ["module", "by module"],
            ["weight", "by weight"],
          ]}
          onChange={(colour) => go({ colour: colour as "module" | "weight" }, true)}
        />
        <label class="check">
          <input type="checkbox" checked={state.fold} onChange={(e) => go({ fold: e.currentTarget.checked })} /> fold recursion
        </label>
        <label class="searchbox">
          <span class="hidden">Search</span>
          <input id="search" type="search" placeholder="search /" value={state.search} onInput={(e) => go({ search: e.currentTarget.value }, true)} />
        </label>
        <button onClick={() => setTwin(!twin)} aria-pressed={twin}>
          Table
        </button>
        <button disabled={!main.data} onClick={() => main.data && download("statmem-flame.svg", "image/svg+xml", flameSvg(main.data))}>
          SVG
        </button>
        <button disabled={!main.data} onClick={() => exportPng()}>
          PNG
        </button>
      </div>
      {focused && (
        <nav class="focus" aria-label="Focus">
          <span>focus</span>
          {state.focus.map((id, i) => (
            <>
              {i > 0 && <span aria-hidden="true">›</span>}
              <button class="crumb" title="only this call" onClick={() => go({ focus: [id] })}>
                {safe(placeOfId(id).name, 60)}
              </button>
            </>
          ))}
          <span class="dim">
            {main.data && `${value(here, main.data.measure)} (${percent(here, total)})`}
          </span>
          <button onClick={() => go({ focus: state.focus.slice(1) })} title="drop the outermost call">
            ‹ less
          </button>
          <button onClick={() => go({ focus: state.focus.slice(0, -1) })} title="drop the innermost call (Backspace)">
            less ›
          </button>
          <button onClick={() => go({ focus: [] })}>clear</button>
        </nav>
      )}
      <Waiting answer={main} height={480}>
        {() => (
          <Flame
            callees={focused || state.dir === "callees" ? callees.data : null}
            callers={focused || state.dir === "callers" ? callers.data : null}
            focus={state.focus.map(placeOfId)}
            search={state.search}
            colour={state.colour}
            onSelect={setSelection}
            onFocus={onFocus}
            onRetract={() => go({ focus: state.focus.slice(0, -1) })}
          />
        )}
      </Waiting>
      <div class="selection" role="region" aria-label="Selected call" aria-live="polite">
        {selection ? (
          <>
            <Name place={selection.place} />
            <button onClick={() => onFocus(selection)}>Focus (Enter)</button>
            <button onClick={() => go({ filter: both(state.filter, `inside ${quote(selection.place.name)}`) })}>Only inside it</button>
            <button onClick={() => go({ filter: both(state.filter, `not inside ${quote(selection.place.name)}`) })}>Not inside it</button>
            <button onClick={() => go({ filter: both(state.filter, `hide ${quote(selection.place.name)}`) })}>Hide</button>
            <button onClick={() => void navigator.clipboard?.writeText(safe(selection.place.name))}>Copy name</button>
            {selection.place.file && <button onClick={() => go({ view: "source", file: selection.place.file, line: selection.place.line })}>Source</button>}
          </>
        ) : (
          <span class="dim">
            {main.data && main.data.folded.nodes > 0
              ? `${main.data.folded.nodes} boxes below 0.02 % of the whole are not drawn (${value(main.data.folded.value, main.data.measure)})`
              : "click selects, double click focuses, Ctrl+wheel zooms, ? shows keys"}
          </span>
        )}
      </div>
      {twin && main.data && <Twin tree={main.data} onFocus={(place) => go({ focus: [place.id] })} />}
    </>
  );
}

function exportPng(): void {
  const canvas = document.querySelector<HTMLCanvasElement>(".flame canvas");
  canvas?.toBlob((blob) => {
    if (blob) download("statmem-flame.png", "image/png", blob);
  });
}

/** The same tree as a tree grid, for keyboards and screen readers. */
function Twin({ tree, onFocus }: { tree: TreeData; onFocus: (place: Place) => void }) {
  const [open, setOpen] = useState<Set<number>>(new Set([0]));
  const visible: number[] = [];
  const { depth, total, own, place } = tree.nodes;
  for (let i = 0; i < depth.length && visible.length < 500; ) {
    visible.push(i);
    if (open.has(i)) {
      i++;
      continue;
    }
    const d = depth[i] ?? 0;
    for (i++; i < depth.length && (depth[i] ?? 0) > d; i++);
  }
  const toggle = (i: number) => {
    const next = new Set(open);
    if (next.has(i)) next.delete(i);
    else next.add(i);
    setOpen(next);
  };
  return (
    <table class="twin" role="treegrid" aria-label="Calls">
      <thead>
        <tr>
          <th scope="col" class="right">
            total
          </th>
          <th scope="col" class="right">
            itself
          </th>
          <th scope="col">call</th>
        </tr>
      </thead>
      <tbody>
        {visible.map((i) => {
          const p = tree.places[place[i] ?? 0];
          const children = (depth[i + 1] ?? 0) > (depth[i] ?? 0);
          return (
            <tr role="row" aria-level={(depth[i] ?? 0) + 1} aria-expanded={children ? open.has(i) : undefined}>
              <td class="right">
                {value(total[i] ?? 0, tree.measure)} <span class="dim">{percent(total[i] ?? 0, total[0] ?? 0)}</span>
              </td>
              <td class="right">{(own[i] ?? 0) > 0 ? value(own[i] ?? 0, tree.measure) : ""}</td>
              <td style={{ paddingLeft: `${Math.min(depth[i] ?? 0, 40) * 14 + 8}px` }}>
                <button class="expand" disabled={!children} aria-label={open.has(i) ? "close" : "open"} onClick={() => toggle(i)}>
                  {children ? (open.has(i) ? "▾" : "▸") : "·"}
                </button>
                {p && <Name place={p} onClick={() => onFocus(p)} />}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
