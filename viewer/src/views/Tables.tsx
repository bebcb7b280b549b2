/** Tables: places with callers and callees that open in place, and groups of all kinds. */
import type { Estimate, Groups, Measure, PlaceRow, Places, TreeData } from "../api";
import { both } from "../filters";
import { percent, safe, value } from "../format";
import { useApi, useDelayed } from "../ui/hooks";
import { Choice, Name, Share, Table, Value, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";

const BY: [string, string][] = [
  ["function", "functions"],
  ["line", "lines"],
  ["file", "files"],
  ["module", "modules"],
  ["domain", "domains"],
  ["thread", "threads"],
  ["source", "heaps and origins"],
  ["size", "sizes"],
  ["lifetime", "lifetimes"],
  ["time", "time of allocation"],
  ["promoted", "promoted or not"],
];

export function measureOf(weight: string): Measure {
  return weight === "lifetime" ? "byte-seconds" : weight === "samples" ? "samples" : weight === "objects" ? "objects" : "bytes";
}

const PLACES = ["function", "line", "file", "module"];

export function Tables(props: ViewProps) {
  const { state, go } = props;
  return (
    <>
      <div class="tools">
        <Choice label="By" value={state.by} options={BY} onChange={(by) => go({ by })} />
        {PLACES.includes(state.by) && (
          <label class="searchbox">
            <span class="hidden">Search</span>
            <input id="search" type="search" placeholder="search /" value={state.search} onInput={(e) => go({ search: e.currentTarget.value }, true)} />
          </label>
        )}
      </div>
      {PLACES.includes(state.by) ? <PlaceTable {...props} /> : <GroupTable {...props} />}
    </>
  );
}

const number = (e: Estimate | undefined): number => e?.value ?? e?.samples ?? 0;

function PlaceTable({ state, info, go }: ViewProps) {
  const search = useDelayed(state.search, 150);
  const weights = state.weight === "allocated" ? ["allocated", "live@end"] : [state.weight, "allocated"];
  const answer = useApi<Places>("places", { ...rows(state, info), weight: weights, key: state.by, search, top: 200, fold: state.fold ? 1 : undefined });
  const measure = measureOf(state.weight);
  return (
    <Waiting answer={answer} height={500}>
      {(p) => (
        <Table<PlaceRow>
          label={`${state.by} table`}
          rows={p.rows}
          more={p.more}
          sort={{ column: 0, falling: true }}
          expand={(r) => <Neighbours id={r.place.id} state={state} info={info} go={go} />}
          columns={[
            { name: "with callees", title: `${weights[0]}, with callees`, number: (r) => number(r.total[0]), cell: (r) => r.total[0] && <Value e={r.total[0]} measure={measure} />, text: (r) => String(number(r.total[0])) },
            { name: "share", number: (r) => number(r.total[0]), cell: (r) => <Share part={number(r.total[0])} whole={number(p.totals[0])} />, text: (r) => percent(number(r.total[0]), number(p.totals[0])) },
            { name: "itself", title: `${weights[0]}, by the place itself`, number: (r) => number(r.own[0]), cell: (r) => r.own[0] && <Value e={r.own[0]} measure={measure} />, text: (r) => String(number(r.own[0])) },
            { name: weights[1] === "live@end" ? "live at the end" : "allocated", number: (r) => number(r.total[1]), cell: (r) => r.total[1] && <Value e={r.total[1]} />, text: (r) => String(number(r.total[1])) },
            { name: state.by, text: (r) => r.place.id, wide: true, cell: (r) => <Name place={r.place} onClick={() => go({ view: "flame", key: state.by, focus: [r.place.id] })} /> },
          ]}
        />
      )}
    </Waiting>
  );
}

/** V18: callers and callees of a place, one step each way. */
function Neighbours({ id, state, info, go }: { id: string } & Pick<ViewProps, "state" | "info" | "go">) {
  return (
    <div class="neighbours">
      <Step title="called by" direction="callers" id={id} state={state} info={info} go={go} />
      <Step title="calls" direction="callees" id={id} state={state} info={info} go={go} />
    </div>
  );
}

function Step({ title, direction, id, state, info, go }: { title: string; direction: string; id: string } & Pick<ViewProps, "state" | "info" | "go">) {
  const answer = useApi<TreeData>("tree", { ...rows(state, info), weight: state.weight, key: state.by, focus: [id], direction, depth: 1, min_share: 0 });
  return (
    <section>
      <h3>{title}</h3>
      <Waiting answer={answer} height={60}>
        {(t) => (
          <ul class="steps">
            {t.nodes.depth.map((d, i) => {
              const place = t.places[t.nodes.place[i] ?? 0];
              return (
                d === 1 &&
                place && (
                  <li>
                    <span class="value">{value(t.nodes.total[i] ?? 0, t.measure)}</span> <Share part={t.nodes.total[i] ?? 0} whole={t.nodes.total[0] ?? 0} />
                    <Name place={place} onClick={() => go({ view: "flame", key: state.by, focus: direction === "callers" ? [place.id, id] : [id, place.id] })} />
                  </li>
                )
              );
            })}
            {(t.nodes.own[0] ?? 0) > 0 && (
              <li>
                <span class="value">{value(t.nodes.own[0] ?? 0, t.measure)}</span> <Share part={t.nodes.own[0] ?? 0} whole={t.nodes.total[0] ?? 0} />
                <span class="dim">{direction === "callers" ? "outermost" : "itself"}</span>
              </li>
            )}
          </ul>
        )}
      </Waiting>
    </section>
  );
}

function GroupTable({ state, info, go }: ViewProps) {
  const ordered = ["size", "lifetime", "time"].includes(state.by);
  const weights = state.weight === "allocated" ? ["allocated", "live@end"] : [state.weight, "allocated"];
  const answer = useApi<Groups>("groups", { ...rows(state, info), by: state.by, weight: weights, order: ordered ? "value" : undefined, top: 500 });
  const measure = measureOf(state.weight);
  return (
    <Waiting answer={answer} height={500}>
      {(g) => (
        <Table
          label={`${state.by} table`}
          rows={g.rows}
          more={g.more}
          columns={[
            { name: weights[0] ?? "", number: (r) => number(r.estimates[0]), cell: (r) => r.estimates[0] && <Value e={r.estimates[0]} measure={measure} />, text: (r) => String(number(r.estimates[0])) },
            { name: "share", number: (r) => number(r.estimates[0]), cell: (r) => <Share part={number(r.estimates[0])} whole={number(g.totals[0])} />, text: (r) => percent(number(r.estimates[0]), number(g.totals[0])) },
            { name: weights[1] ?? "", number: (r) => number(r.estimates[1]), cell: (r) => r.estimates[1] && <Value e={r.estimates[1]} />, text: (r) => String(number(r.estimates[1])) },
            {
              name: state.by,
              wide: true,
              text: (r) => r.values[0]?.name ?? "",
              cell: (r) => {
                const v = r.values[0];
                if (!v) return null;
                return v.filter ? (
                  <button class="link" onClick={() => go({ filter: both(state.filter, v.filter) })}>
                    {safe(v.name, 200)}
                  </button>
                ) : (
                  safe(v.name, 200)
                );
              },
            },
          ]}
        />
      )}
    </Waiting>
  );
}
