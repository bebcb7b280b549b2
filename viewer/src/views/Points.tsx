/** Points of interest: hot functions, hot paths, leaks, temporaries. */
import type { Fragments, Leak, Leaks } from "../api";
import { bytes, duration, safe } from "../format";
import { useApi } from "../ui/hooks";
import { Choice, Name, Share, Table, Value, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";
import { measureOf } from "./Tables";
import { useState } from "preact/hooks";

export function Points({ state, info, go }: ViewProps) {
  const [least, setLeast] = useState("0.01");
  const fragments = useApi<Fragments>("fragments", { ...rows(state, info), weight: state.weight, key: state.key, min_share: least, top: 60 });
  const leaks = useApi<Leaks>("leaks", { ...rows(state, info), key: state.key, top: 50 });
  const measure = measureOf(state.weight);
  return (
    <div class="columns">
      <section>
        <h2>Hot functions and paths</h2>
        <div class="tools">
          <Choice
            label="At least"
            value={least}
            options={[
              ["0.001", "0.1 %"],
              ["0.005", "0.5 %"],
              ["0.01", "1 %"],
              ["0.05", "5 %"],
            ]}
            onChange={setLeast}
          />
        </div>
        <Waiting answer={fragments} height={400}>
          {(f) => {
            const whole = f.total.value ?? f.total.samples;
            return (
              <>
                {!f.complete && <p class="warn">There are more heavy fragments than were looked at; raise the threshold.</p>}
                <h3>Functions</h3>
                <ol class="sites">
                  {f.functions.map((x) => (
                    <li>
                      <Value e={x.estimate} measure={measure} /> <Share part={x.estimate.value ?? x.estimate.samples} whole={whole} />
                      <Name place={x.place} onClick={() => go({ view: "flame", focus: [x.place.id], fold: true })} />
                    </li>
                  ))}
                </ol>
                <h3>Paths</h3>
                <ol class="sites">
                  {f.paths.map((x) => (
                    <li>
                      <Value e={x.estimate} measure={measure} /> <Share part={x.estimate.value ?? x.estimate.samples} whole={whole} />
                      <button class="link path" onClick={() => go({ view: "flame", focus: x.places.map((p) => p.id), fold: true })}>
                        {safe(x.places.length > 4 ? [...x.places.slice(0, 2), { name: `… ${x.places.length - 4} more …` }, ...x.places.slice(-2)].map((p) => p.name).join(" › ") : x.places.map((p) => p.name).join(" › "), 400)}
                      </button>
                    </li>
                  ))}
                </ol>
              </>
            );
          }}
        </Waiting>
      </section>
      <section>
        <h2>Alive at the end, by leak score</h2>
        <Waiting answer={leaks} height={400}>
          {(l) => (
            <Table<Leak>
              label="leaks"
              rows={l.sites}
              more={l.more}
              columns={[
                { name: "score", title: "spread over the run's generations × trend of live memory", number: (r) => r.score, cell: (r) => <span class={r.score >= 0.5 ? "warn" : ""}>{r.score.toFixed(2)}</span>, text: (r) => String(r.score) },
                { name: "live", number: (r) => r.live.value ?? r.live.samples, cell: (r) => <Value e={r.live} />, text: (r) => String(r.live.value) },
                {
                  name: "growth",
                  number: (r) => r.slope ?? 0,
                  text: (r) => String(r.slope),
                  cell: (r) =>
                    r.slope === null ? (
                      "–"
                    ) : (
                      <span title={`95 %: ${bytes(r.slope_low ?? 0)}/s to ${bytes(r.slope_high ?? 0)}/s`} class={(r.slope_low ?? 0) > 0 ? "warn" : ""}>
                        {bytes(r.slope)}/s
                      </span>
                    ),
                },
                { name: "mean age", number: (r) => r.mean_age_ns, cell: (r) => <span title={`allocated from ${duration(r.first_ns)} to ${duration(r.last_ns)}`}>{duration(r.mean_age_ns)}</span>, text: (r) => String(r.mean_age_ns) },
                { name: "site", wide: true, text: (r) => r.place.id, cell: (r) => <Name place={r.place} onClick={() => go({ view: "flame", focus: [r.place.id], weight: "live@end" })} /> },
              ]}
            />
          )}
        </Waiting>
      </section>
    </div>
  );
}
