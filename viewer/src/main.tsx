import { render } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError, get, type TraceInfo, type Traces } from "./api";
import "./app.css";
import { bytes, count, duration, safe } from "./format";
import { parse, print, VIEWS, type State } from "./state";
import { FilterBar } from "./ui/FilterBar";
import { Choice, Value } from "./ui/parts";
import { CompareView } from "./views/CompareView";
import { FlameView } from "./views/FlameView";
import { Overview } from "./views/Overview";
import { Points } from "./views/Points";
import { Source } from "./views/Source";
import { Tables } from "./views/Tables";
import { Timeline } from "./views/Timeline";

const TITLES: Record<State["view"], string> = {
  overview: "Overview",
  timeline: "Timeline",
  flame: "Flame graph",
  tables: "Tables",
  points: "Points of interest",
  source: "Source",
  compare: "Compare",
};

function useTraces(): { traces: Traces | null; gone: boolean; error: string } {
  const [traces, setTraces] = useState<Traces | null>(null);
  const [gone, setGone] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => {
    let waiting = false;
    const ask = () => {
      if (waiting) return;
      waiting = true;
      get<Traces>("traces", {}).then(
        (t) => {
          waiting = false;
          setTraces(t);
          setGone(false);
          setError("");
        },
        (reason: unknown) => {
          waiting = false;
          if (reason instanceof ApiError && reason.status !== 0) setError(reason.message);
          else setGone(true);
        },
      );
    };
    ask();
    if (document.getElementById("statmem-data")) return;
    const events = new EventSource("/api/v1/events");
    events.addEventListener("traces", ask);
    events.onerror = () => setGone(true);
    events.onopen = () => {
      setGone(false);
      ask();
    };
    return () => events.close();
  }, []);
  return { traces, gone, error };
}

function App() {
  const [state, setState] = useState<State>(() => parse(location.search));
  const { traces, gone, error } = useTraces();
  const [panel, setPanel] = useState<"" | "info" | "keys">("");
  useEffect(() => {
    const back = () => setState(parse(location.search));
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const go = useCallback((change: Partial<State>, replace = false) => {
    setState((old) => {
      const next = { ...old, ...change };
      const url = `${location.pathname}${print(next)}`;
      if (replace) history.replaceState(null, "", url);
      else if (print(next) !== print(old)) history.pushState(null, "", url);
      return next;
    });
  }, []);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement || e.target instanceof HTMLTextAreaElement;
      if (e.key === "Escape") setPanel("");
      if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
      const number = Number(e.key);
      if (number >= 1 && number <= VIEWS.length) go({ view: VIEWS[number - 1] ?? "overview" });
      else if (e.key === "?") setPanel((p) => (p === "keys" ? "" : "keys"));
      else if (e.key === "i") setPanel((p) => (p === "info" ? "" : "info"));
      else if (e.key === "/") document.getElementById(document.getElementById("search") ? "search" : "filter")?.focus();
      else if (e.key === "f") document.getElementById("filter")?.focus();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [go]);
  const list = traces?.traces ?? [];
  const info = list[state.trace] ?? list[0];
  useEffect(() => {
    document.title = info ? `${TITLES[state.view]} · ${safe(info.name, 80)} · statmem` : "statmem";
  }, [state.view, info?.name]);
  return (
    <>
      <header>
        <a class="skip" href="#main">
          skip to content
        </a>
        <h1>statmem</h1>
        {list.length > 1 ? (
          <Choice label="Trace" hideLabel value={String(state.trace)} options={list.map((t) => [String(t.id), safe(t.name, 60)] as [string, string])} onChange={(t) => go({ trace: Number(t), focus: [] })} />
        ) : (
          <span class="tracename">{info && safe(info.name, 80)}</span>
        )}
        <Signs info={info} gone={gone} />
        <nav aria-label="Views">
          {VIEWS.map((v, i) => (
            <a
              href={`${location.pathname}${print({ ...state, view: v })}`}
              aria-current={state.view === v ? "page" : undefined}
              title={`key ${i + 1}`}
              onClick={(e) => {
                if (e.ctrlKey || e.metaKey || e.shiftKey) return;
                e.preventDefault();
                go({ view: v });
              }}
            >
              {TITLES[v]}
            </a>
          ))}
        </nav>
        <span class="right">
          <button aria-expanded={panel === "info"} onClick={() => setPanel(panel === "info" ? "" : "info")}>
            Info
          </button>
          <button aria-expanded={panel === "keys"} aria-label="Keyboard" onClick={() => setPanel(panel === "keys" ? "" : "keys")}>
            ?
          </button>
        </span>
      </header>
      {info?.state === "ready" && <FilterBar filter={state.filter} weight={state.weight} onFilter={(filter) => go({ filter })} onWeight={(weight) => go({ weight })} />}
      {panel === "info" && info && <Info info={info} version={traces?.statmem ?? ""} />}
      {panel === "keys" && <Keys />}
      <main id="main" tabIndex={-1}>
        {error && (
          <p class="trouble" role="alert">
            {error}
          </p>
        )}
        {!error && <Content state={state} info={info} list={list} go={go} />}
      </main>
    </>
  );
}

function Content({ state, info, list, go }: { state: State; info: TraceInfo | undefined; list: TraceInfo[]; go: (c: Partial<State>, r?: boolean) => void }) {
  if (!info || info.state === "loading")
    return (
      <div class="busy tall" aria-busy="true">
        <p>reading {info ? safe(info.name, 80) : "…"}</p>
        <progress max={1} value={info?.progress || undefined} aria-label="loading" />
      </div>
    );
  if (info.state === "failed")
    return (
      <p class="trouble" role="alert">
        {safe(info.error, 600)}
      </p>
    );
  if (info.rows === 0) return <p class="trouble">The trace has no samples: the program allocated little for its sampling rate, or ended early.</p>;
  const props = { state, info, traces: list, go };
  switch (state.view) {
    case "timeline":
      return <Timeline {...props} />;
    case "flame":
      return <FlameView {...props} />;
    case "tables":
      return <Tables {...props} />;
    case "points":
      return <Points {...props} />;
    case "source":
      return <Source {...props} />;
    case "compare":
      return <CompareView {...props} />;
    default:
      return <Overview {...props} />;
  }
}

function Signs({ info, gone }: { info: TraceInfo | undefined; gone: boolean }) {
  return (
    <span class="signs" role="status">
      {gone && <span class="sign bad">the server is gone</span>}
      {info?.following && <span class="sign live">live</span>}
      {info?.changed_on_disk && <span class="sign">changed on disk; start anew to see it</span>}
      {info && info.losses?.length > 0 && <span class="sign">events were lost</span>}
    </span>
  );
}

function Info({ info, version }: { info: TraceInfo; version: string }) {
  const row = (name: string, text: string) =>
    text !== "" && (
      <>
        <dt>{name}</dt>
        <dd>{safe(text, 400)}</dd>
      </>
    );
  return (
    <aside class="panel" aria-label="About the trace">
      <dl>
        {row("trace", info.path)}
        {row("program", info.executable)}
        {row("arguments", info.args.join(" "))}
        {row("context", info.context)}
        {row("started", new Date(info.start_real_ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC")}
        {row("ran", duration(info.last_ns))}
        {row("host, pid", `${info.host}, ${info.pid}`)}
        {row("OCaml", info.ocaml_version)}
        {row("word size", `${info.word_bytes} bytes`)}
        {row("sampling", info.bytes_per_sample !== null ? `1 sample per ${bytes(info.bytes_per_sample)}` : "rate unknown")}
        {row("samples", `${count(info.samples)} in ${count(info.rows)} blocks, ${count(info.events)} events`)}
        {row("format", `${info.format}, ${bytes(info.bytes)}, read in ${info.load_seconds.toFixed(2)} s${info.from_cache ? " from the cache" : ""}`)}
        <dt>peak</dt>
        <dd>
          <Value e={info.peak} /> at {duration(info.peak_ns)}
        </dd>
        {row("statmem", version)}
      </dl>
    </aside>
  );
}

function Keys() {
  const keys: [string, string][] = [
    ["1 … 7", "views"],
    ["f", "filter"],
    ["/", "search"],
    ["i, ?", "about the trace, this list"],
    ["arrows, h j k l", "flame graph: move"],
    ["Enter, Backspace", "flame graph: focus, back"],
    ["+ − 0 z", "flame graph: zoom, reset, zoom to the selection"],
    ["c", "flame graph: copy the name"],
    ["browser's back and forward", "undo and redo of everything"],
  ];
  return (
    <aside class="panel" aria-label="Keyboard">
      <dl>
        {keys.map(([key, text]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
    </aside>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
