/** The filter: chips for its conditions, its text, a builder, presets. Text and chips are two views of one thing. */
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type FilterCheck } from "../api";
import { both, CONDITIONS, PRESETS, viewsOf, without, splitTop } from "../filters";
import { safe } from "../format";
import { useBusy, useDelayed } from "./hooks";
import { Choice, WEIGHTS } from "./parts";

export function FilterBar(props: {
  filter: string;
  weight: string;
  onFilter: (filter: string) => void;
  onWeight: (weight: string) => void;
}) {
  const [text, setText] = useState(props.filter);
  const [check, setCheck] = useState<FilterCheck>({ canonical: props.filter, clauses: [] });
  const [building, setBuilding] = useState(false);
  const busy = useBusy();
  const delayed = useDelayed(text, 120);
  const applied = useRef(props.filter);
  useEffect(() => {
    applied.current = props.filter;
    setText(props.filter);
  }, [props.filter]);
  useEffect(() => {
    const abort = new AbortController();
    get<FilterCheck>("filter", { text: delayed }, abort.signal).then(setCheck, () => undefined);
    return () => abort.abort();
  }, [delayed]);
  const wrong = check.error !== undefined && delayed === text;
  const views = viewsOf(check.canonical ?? "");
  const clauses = [...(check.clauses ?? []), ...splitTop(views)];
  const apply = () => {
    if (!wrong) props.onFilter(text.trim());
  };
  const remove = (i: number) => {
    const n = check.clauses?.length ?? 0;
    const rest = splitTop(views).filter((_, k) => k !== i - n).join("; ");
    props.onFilter(i < n ? without(check.clauses ?? [], views, i) : both((check.clauses ?? []).join(" and "), rest));
  };
  return (
    <section class="filterbar" aria-label="Filter">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          apply();
        }}
      >
        <label class="filtertext">
          <span class="hidden">Filter</span>
          <input
            id="filter"
            type="text"
            spellcheck={false}
            autocomplete="off"
            placeholder="all allocations; e.g. size >= 1kB and not collected"
            value={text}
            aria-invalid={wrong}
            aria-describedby="filter-error"
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Escape") setText(props.filter);
            }}
          />
        </label>
        <button type="submit" disabled={wrong || text.trim() === props.filter}>
          Apply
        </button>
        <button type="button" aria-expanded={building} onClick={() => setBuilding(!building)}>
          Add…
        </button>
        <Choice
          label="Preset"
          hideLabel
          value="?"
          options={[["?", "Presets"], ...PRESETS.map((p) => [p.filter, p.name] as [string, string])]}
          onChange={(value) => {
            if (value !== "?") props.onFilter(value);
          }}
        />
        <Choice label="Weight" value={props.weight} options={WEIGHTS} onChange={props.onWeight} />
        <span class={busy ? "spinner" : "spinner off"} role="status" aria-label={busy ? "computing" : ""} />
      </form>
      <p id="filter-error" class="filtererror" role="alert">
        {wrong && (
          <>
            {check.error}
            {text.length < 160 && check.column !== undefined && (
              <code aria-hidden="true">
                {"\n"}
                {text}
                {"\n"}
                {" ".repeat(Math.max(0, check.column - 1))}^
              </code>
            )}
          </>
        )}
      </p>
      {!wrong && clauses.length > 0 && (
        <ul class="chips" aria-label="Conditions">
          {clauses.map((c, i) => (
            <li>
              {safe(c, 120)}
              <button aria-label={`remove ${safe(c, 80)}`} onClick={() => remove(i)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {building && <Builder onAdd={(clause) => props.onFilter(both(props.filter, clause))} onClose={() => setBuilding(false)} />}
    </section>
  );
}

function Builder({ onAdd, onClose }: { onAdd: (clause: string) => void; onClose: () => void }) {
  const [kind, setKind] = useState(6);
  const [values, setValues] = useState<string[]>([]);
  const [check, setCheck] = useState<FilterCheck>({});
  const condition = CONDITIONS[kind] ?? CONDITIONS[0];
  const full = condition?.fields.map((f, i) => values[i] ?? f.choices?.[0] ?? "") ?? [];
  const clause = condition?.make(full) ?? "";
  const complete = full.every((v) => v !== "");
  const delayed = useDelayed(clause, 120);
  useEffect(() => {
    const abort = new AbortController();
    if (complete) get<FilterCheck>("filter", { text: delayed }, abort.signal).then(setCheck, () => undefined);
    return () => abort.abort();
  }, [delayed, complete]);
  const valid = complete && check.error === undefined;
  return (
    <form
      class="builder"
      onSubmit={(e) => {
        e.preventDefault();
        if (!valid) return;
        onAdd(clause);
        onClose();
      }}
      onKeyDown={(e) => {
        if (e.key === "Escape") onClose();
      }}
    >
      <Choice
        label="Condition"
        value={String(kind)}
        options={CONDITIONS.map((c, i) => [String(i), c.name] as [string, string])}
        onChange={(v) => {
          setKind(Number(v));
          setValues([]);
        }}
      />
      {condition?.fields.map((f, i) =>
        f.kind === "choice" ? (
          <Choice
            label={f.label}
            hideLabel
            value={full[i] ?? ""}
            options={(f.choices ?? []).map((c) => [c, c] as [string, string])}
            onChange={(v) => setValues(Object.assign([...full], { [i]: v }))}
          />
        ) : (
          <label>
            <span class="hidden">{f.label}</span>
            <input
              type="text"
              placeholder={f.placeholder}
              value={values[i] ?? ""}
              onInput={(e) => setValues(Object.assign([...full], { [i]: e.currentTarget.value }))}
            />
          </label>
        ),
      )}
      <button type="submit" disabled={!valid}>
        Add
      </button>
      <code>{complete ? safe(clause, 200) : ""}</code>
      <span class="filtererror">{complete && check.error}</span>
    </form>
  );
}
