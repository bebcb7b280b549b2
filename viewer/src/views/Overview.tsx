/** What a user asks first, answered in words and numbers. */
import type { ComponentChildren } from "preact";
import type { Leaks, Memory, Moment, NamedGroup, Part, PlaceEstimate, Summary, TimelineData } from "../api";
import { bytes, count, duration, percent, safe } from "../format";
import { both } from "../filters";
import { Chart } from "../ui/Chart";
import { useApi } from "../ui/hooks";
import { Name, Share, Table, Value, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";

export function Overview(props: ViewProps) {
  const { state, info } = props;
  const summary = useApi<Summary>("summary", rows(state, info));
  const leaks = useApi<Leaks>("leaks", { ...rows(state, info), top: 3 });
  const timeline = useApi<TimelineData>("timeline", { ...rows(state, info), points: 400 });
  return (
    <>
      <Waiting answer={summary} height={420}>
        {(s) => <Answers s={s} leaks={leaks.data} {...props} />}
      </Waiting>
      <h2>Live memory</h2>
      <Waiting answer={timeline} height={230}>
        {(t) => (
          <Chart
            data={t}
            height={200}
            stacked={false}
            wall={null}
            peakNs={t.series[0]?.peak_ns ?? null}
            marks={info.marks}
            onRange={(from, to) => props.go({ view: "timeline", from, to })}
          />
        )}
      </Waiting>
    </>
  );
}

function Card({ title, children, action }: { title: string; children: ComponentChildren; action?: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
      {action && <p class="action">{action}</p>}
    </section>
  );
}

function Answers({ s, leaks, state, info, go }: ViewProps & { s: Summary; leaks: Leaks | null }) {
  const link = (text: string, change: Parameters<typeof go>[0]) => (
    <button class="link" onClick={() => go(change)}>
      {text}
    </button>
  );
  const sites = (list: PlaceEstimate[], whole: number) => (
    <ol class="sites">
      {list.map((x) => (
        <li>
          <Value e={x.estimate} /> <Share part={x.estimate.value ?? x.estimate.samples} whole={whole} />
          <Name place={x.place} onClick={() => go({ view: "flame", focus: [x.place.id], weight: "allocated" })} />
        </li>
      ))}
    </ol>
  );
  const all = s.allocated.value ?? s.allocated.samples;
  const end = s.live_end.value ?? s.live_end.samples;
  const peak = s.peak.value ?? s.peak.samples;
  const early = s.early.value ?? s.early.samples;
  const growing = (leaks?.sites ?? []).filter((l) => l.score >= 0.5 && (l.slope_low ?? 0) > 0);
  const seconds = info.last_ns / 1e9;
  return (
    <div class="cards">
      <Card title="The whole" action={link("flame graph", { view: "flame", weight: "allocated" })}>
        <p>
          <strong>
            <Value e={s.allocated} />
          </strong>{" "}
          allocated in {duration(info.last_ns)}
          {seconds > 0 && s.allocated.value !== null && <> ({bytes(s.allocated.value / seconds)} a second)</>}, about{" "}
          {s.objects.value !== null ? count(s.objects.value) : "?"} blocks. {percent(early, all)} died without being promoted.
        </p>
        {sites(s.sites.allocated, all)}
      </Card>
      <Card title="The peak" action={link("what it was", { view: "flame", weight: state.filter ? "live@own-peak" : "live@peak" })}>
        <p>
          <strong>
            <Value e={s.peak} />
          </strong>{" "}
          alive at most, at {duration(s.peak_ns)} ({percent(s.peak_ns, info.last_ns)} of the run).
        </p>
        {sites(s.sites.peak, peak)}
      </Card>
      <Card title="Alive at the end" action={link("all sites by leak score", { view: "points" })}>
        <p>
          <strong>
            <Value e={s.live_end} />
          </strong>
          , {percent(end, peak)} of the peak.{" "}
          {leaks === null
            ? "Looking for what grows…"
            : growing.length === 0
            ? "No site grows throughout the run."
            : `${growing.length === 1 ? "One site keeps" : `${growing.length} sites keep`} growing:`}
        </p>
        {growing.length > 0 ? (
          <ol class="sites">
            {growing.map((l) => (
              <li>
                <Value e={l.live} /> <span class="warn">+{bytes(l.slope ?? 0)}/s</span>
                <Name place={l.place} onClick={() => go({ view: "flame", focus: [l.place.id], weight: "live@end" })} />
              </li>
            ))}
          </ol>
        ) : (
          sites(s.sites.live_end, end)
        )}
      </Card>
      <Card title="Temporary" action={link("who makes garbage", { view: "flame", weight: "temporary" })}>
        <p>
          <strong>
            <Value e={s.temporary} />
          </strong>{" "}
          ({percent(s.temporary.value ?? s.temporary.samples, all)}) was dead before another megabyte had been allocated.
        </p>
        {sites(s.sites.temporary, s.temporary.value ?? s.temporary.samples)}
      </Card>
      <Card title={s.domains.length > 1 ? "Domains" : "Where"}>
        {s.domains.length > 1 && <Shares list={s.domains} whole={all} filter={state.filter} go={go} />}
        <Shares list={s.sources} whole={all} filter={state.filter} go={go} />
      </Card>
      {info.memory && (
        <Card title="The process" action={link("over time", { view: "timeline" })}>
          <Process memory={info.memory} />
        </Card>
      )}
      {info.losses.length > 0 && (
        <Card title="Lost">
          <ul>
            {info.losses.map((l) => (
              <li>
                <strong>{safe(l.kind)}</strong>: {safe(l.detail, 400)}
              </li>
            ))}
          </ul>
        </Card>
      )}
    </div>
  );
}

const PARTS: [Part, string][] = [
  ["rss", "resident (RSS)"],
  ["file", "files: program, libraries"],
  ["heap", "OCaml's heap"],
  ["native", "native memory in use"],
  ["kept", "free, kept by malloc"],
  ["unexplained", "unexplained"],
  ["absent", "− taken, not resident"],
];

/** Figures of the system, not estimates: what resident memory is made of, and which part grew. */
function Process({ memory }: { memory: Memory }) {
  const shown = PARTS.filter(([part]) => memory.last[part] !== undefined);
  const cell = (m: Moment, part: Part) => bytes(m[part] ?? 0);
  return (
    <>
      <p>{memory.verdict.split(": statmem ")[0]}{memory.verdict.includes(": statmem ") ? "." : ""}</p>
      <table aria-label="resident memory">
        <thead>
          <tr>
            <th />
            <th class="right">first</th>
            <th class="right">at RSS peak</th>
            <th class="right">last</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(([part, title]) => (
            <tr class={part === memory.grew ? "warn" : ""}>
              <td>{title}</td>
              <td class="right">{cell(memory.first, part)}</td>
              <td class="right">{cell(memory.peak, part)}</td>
              <td class="right">{cell(memory.last, part)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {memory.gaps > 0 && <p class="dim">Readings are missing in {memory.gaps === 1 ? "one place" : `${memory.gaps} places`}.</p>}
    </>
  );
}

function Shares({ list, whole, filter, go }: { list: NamedGroup[]; whole: number; filter: string; go: ViewProps["go"] }) {
  return (
    <Table<NamedGroup>
      label="shares"
      rows={list}
      columns={[
        { name: "allocated", number: (r) => r.allocated.value ?? r.allocated.samples, cell: (r) => <Value e={r.allocated} />, text: (r) => String(r.allocated.value) },
        { name: "share", number: (r) => r.allocated.samples, cell: (r) => <Share part={r.allocated.value ?? r.allocated.samples} whole={whole} />, text: () => "" },
        { name: "live at end", number: (r) => r.live_end.value ?? 0, cell: (r) => <Value e={r.live_end} />, text: (r) => String(r.live_end.value) },
        {
          name: "",
          text: (r) => r.name,
          cell: (r) =>
            r.filter ? (
              <button class="link" title={`only ${safe(r.name)}`} onClick={() => go({ filter: both(filter, r.filter) })}>
                {safe(r.name, 60)}
              </button>
            ) : (
              safe(r.name, 60)
            ),
        },
      ]}
    />
  );
}
