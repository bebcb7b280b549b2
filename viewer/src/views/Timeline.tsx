/** Live memory over time: series, ranges, zoom. */
import { useMemo, useState } from "preact/hooks";
import type { Part, TimelineData } from "../api";
import { both, time } from "../filters";
import { bytes, duration, safe } from "../format";
import { Chart, COLOURS } from "../ui/Chart";
import { useApi } from "../ui/hooks";
import { Choice, Table, Value, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";

/** What the system says, beside what the samples tell. */
const CURVES: [Part, string][] = [
  ["rss", "resident (RSS)"],
  ["heap", "OCaml's heap"],
  ["native", "native in use"],
];

export function Timeline({ state, info, go }: ViewProps) {
  const [pending, setPending] = useState<{ from: number; to: number } | null>(null);
  const several = state.series !== "total" || state.and.length > 0;
  const answer = useApi<TimelineData>("timeline", {
    ...rows(state, info),
    series: state.and.length > 0 ? undefined : state.series === "total" && state.filter ? undefined : state.series,
    and: state.and,
    from: state.from ?? undefined,
    to: state.to ?? undefined,
    points: 800,
  });
  const whole = useApi<TimelineData>(state.filter && !several ? "timeline" : null, {
    ...rows(state, info),
    filter: "",
    from: state.from ?? undefined,
    to: state.to ?? undefined,
    points: 800,
  });
  const shown = useMemo<TimelineData | null>(() => {
    if (!answer.data) return null;
    if (!whole.data || several) return answer.data;
    // V3: everything behind what is filtered.
    const all = whole.data.series.map((s) => ({ ...s, name: "all" }));
    return { ...answer.data, series: [...answer.data.series, ...all] };
  }, [answer.data, whole.data, several]);
  const overlay = useMemo(
    () =>
      CURVES.flatMap(([part, name]) => {
        const values = info.memory?.[part];
        return info.memory && values ? [{ name, ns: info.memory.ns, values }] : [];
      }),
    [info.revision, info.id],
  );
  const use = (verb: string) => {
    if (!pending) return;
    go({ filter: both(state.filter, `${verb} ${time(pending.from)}..${time(pending.to)}`) });
    setPending(null);
  };
  return (
    <>
      <div class="tools">
        <Choice
          label="Curves"
          value={state.and.length > 0 ? "filters" : state.series}
          options={[
            ["total", "total"],
            ["domain", "by domain"],
            ["source", "by heap"],
            ["site", "by site"],
          ]}
          onChange={(series) => go({ series, and: [] })}
        />
        <Choice
          label="Time"
          value={state.wall ? "wall" : "elapsed"}
          options={[
            ["elapsed", "elapsed"],
            ["wall", "wall clock (UTC)"],
          ]}
          onChange={(v) => go({ wall: v === "wall" })}
        />
        <button onClick={() => setPending({ from: state.from ?? 0, to: state.to ?? info.last_ns })}>Use range…</button>
        <button disabled={state.from === null && state.to === null} onClick={() => go({ from: null, to: null })}>
          Reset zoom
        </button>
        <button disabled={!state.filter} onClick={() => go({ and: [...state.and, state.filter], filter: "" })} title="keep the filter as a curve beside all">
          Pin filter as curve
        </button>
        {state.and.length > 0 && <button onClick={() => go({ and: [] })}>Drop curves</button>}
      </div>
      {pending && (
        <div class="range" role="group" aria-label="the selected range">
          <strong>
            {duration(pending.from)} to {duration(pending.to)}
          </strong>
          <button
            onClick={() => {
              go({ from: pending.from, to: pending.to });
              setPending(null);
            }}
          >
            Zoom in
          </button>
          <button onClick={() => use("allocated in")}>Allocated in it</button>
          <button onClick={() => use("live in")}>Alive in it</button>
          <button onClick={() => use("collected in")}>Collected in it</button>
          <button onClick={() => setPending(null)}>Cancel</button>
        </div>
      )}
      <Waiting answer={{ ...answer, data: shown }} height={430}>
        {(t) => (
          <>
            <Chart
              data={t}
              height={400}
              stacked={several && state.and.length === 0}
              wall={state.wall ? info.start_real_ns : null}
              peakNs={state.series === "total" || state.and.length > 0 ? (t.series[0]?.peak_ns ?? null) : state.filter ? null : info.peak_ns}
              marks={info.marks}
              overlay={overlay}
              onRange={(from, to) => setPending({ from, to })}
            />
            <Table
              label="curves"
              rows={t.series.map((s, i) => ({ s, i }))}
              columns={[
                { name: "peak", number: (r) => r.s.peak.value ?? 0, cell: (r) => <Value e={r.s.peak} />, text: (r) => String(r.s.peak.value) },
                { name: "at", number: (r) => r.s.peak_ns, cell: (r) => duration(r.s.peak_ns), text: (r) => String(r.s.peak_ns) },
                { name: "at the end", number: (r) => r.s.live[r.s.live.length - 1] ?? 0, cell: (r) => bytes(r.s.live[r.s.live.length - 1] ?? 0), text: (r) => String(r.s.live[r.s.live.length - 1]) },
                {
                  name: "curve",
                  text: (r) => r.s.name,
                  wide: true,
                  cell: (r) => (
                    <>
                      <span class="swatch" style={{ background: COLOURS[r.i % COLOURS.length] ?? "#888" }} />
                      {r.s.filter ? (
                        <button class="link" onClick={() => go({ filter: both(state.filter, r.s.filter), and: [], series: "total" })}>
                          {safe(r.s.name, 120)}
                        </button>
                      ) : (
                        safe(r.s.name, 120)
                      )}
                    </>
                  ),
                },
              ]}
            />
          </>
        )}
      </Waiting>
    </>
  );
}
