/** Two traces, or two parts of one, side by side. */
import type { Compare, CompareRow } from "../api";
import { percent, safe, value } from "../format";
import { useApi, useDelayed } from "../ui/hooks";
import { Choice, Name, Table, Value, Waiting } from "../ui/parts";
import type { ViewProps } from "./common";
import { measureOf } from "./Tables";

export function CompareView({ state, traces, go }: ViewProps) {
  const filterB = useDelayed(state.filterB, 250);
  const answer = useApi<Compare>("compare", { a: state.trace, b: state.b, filter_a: state.filter, filter_b: filterB, weight: state.weight, key: state.key, normalise: state.normalise, top: 300 });
  const names = traces.map((t) => [String(t.id), safe(t.name, 60)] as [string, string]);
  const measure = measureOf(state.weight);
  const signed = (x: number) => `${x > 0 ? "+" : ""}${value(x, measure)}`;
  return (
    <>
      <div class="tools">
        <span class="dim">
          A is {safe(traces[state.trace]?.name ?? "", 60)} with the filter above
        </span>
        <Choice label="B" value={String(state.b)} options={names} onChange={(b) => go({ b: Number(b) })} />
        <label>
          <span>B's filter</span>
          <input type="text" value={state.filterB} placeholder="all; e.g. allocated >= 50%" onInput={(e) => go({ filterB: e.currentTarget.value }, true)} />
        </label>
        <Choice
          label="Scale"
          value={state.normalise}
          options={[
            ["none", "as it is"],
            ["total", "equal totals"],
            ["time", "equal durations"],
          ]}
          onChange={(normalise) => go({ normalise })}
        />
        <button onClick={() => go({ filter: "allocated <= 50%", filterB: "allocated >= 50%", b: state.trace })}>First half against last</button>
      </div>
      <Waiting answer={answer} height={450}>
        {(c) => {
          const a = c.total_a.value ?? c.total_a.samples;
          return (
            <>
              <p>
                A: <Value e={c.total_a} measure={measure} />, B: <Value e={c.total_b} measure={measure} />
                {c.scale !== 1 && ` (times ${c.scale.toPrecision(4)})`}: <strong>{signed(c.delta)}</strong> ({percent(Math.abs(c.delta), a)}),{" "}
                {c.significant ? "a significant change." : "which may be chance."}
              </p>
              <Table<CompareRow>
                label="comparison"
                rows={c.rows}
                more={c.more}
                columns={[
                  { name: "B − A", number: (r) => r.delta, text: (r) => String(r.delta), cell: (r) => <span class={r.significant ? (r.delta > 0 ? "more" : "less") : "dim"}>{signed(r.delta)}</span> },
                  { name: "significant", text: (r) => (r.significant ? "yes" : "no"), cell: (r) => (r.significant ? "yes" : <span class="dim">no</span>) },
                  { name: "A", number: (r) => r.total_a.value ?? 0, text: (r) => String(r.total_a.value), cell: (r) => <Value e={r.total_a} measure={measure} /> },
                  { name: "B", number: (r) => r.total_b.value ?? 0, text: (r) => String(r.total_b.value), cell: (r) => <Value e={r.total_b} measure={measure} /> },
                  { name: "with callees", wide: true, text: (r) => r.place.id, cell: (r) => <Name place={r.place} onClick={() => go({ view: "flame", focus: [r.place.id] })} /> },
                ]}
              />
            </>
          );
        }}
      </Waiting>
    </>
  );
}
