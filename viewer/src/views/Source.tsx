/** Source lines with their weights. */
import { useEffect } from "preact/hooks";
import type { Places, SourceData } from "../api";
import { safe } from "../format";
import { useApi } from "../ui/hooks";
import { Choice, Name, Share, Table, Value, Waiting } from "../ui/parts";
import { rows, type ViewProps } from "./common";
import { measureOf } from "./Tables";

export function Source({ state, info, go }: ViewProps) {
  const files = useApi<Places>("places", { ...rows(state, info), weight: state.weight, key: "file", top: 300 });
  const answer = useApi<SourceData>(state.file ? "source" : null, { ...rows(state, info), weight: state.weight, file: state.file });
  const measure = measureOf(state.weight);
  useEffect(() => {
    document.getElementById(`L${state.line}`)?.scrollIntoView({ block: "center" });
  }, [answer.data, state.line]);
  const list = files.data?.rows.filter((r) => r.place.file !== "").map((r) => [r.place.file, safe(r.place.file, 80)] as [string, string]) ?? [];
  return (
    <>
      <div class="tools">
        <Choice label="File" value={state.file} options={[["", "choose a file"], ...list]} onChange={(file) => go({ file, line: 0 })} />
      </div>
      {state.file === "" ? (
        <Waiting answer={files} height={400}>
          {(p) => (
            <Table
              label="files"
              rows={p.rows.filter((r) => r.place.file !== "")}
              more={p.more}
              columns={[
                { name: "with callees", number: (r) => r.total[0]?.value ?? 0, cell: (r) => r.total[0] && <Value e={r.total[0]} measure={measure} />, text: (r) => String(r.total[0]?.value) },
                { name: "itself", number: (r) => r.own[0]?.value ?? 0, cell: (r) => r.own[0] && <Value e={r.own[0]} measure={measure} />, text: (r) => String(r.own[0]?.value) },
                { name: "file", wide: true, text: (r) => r.place.file, cell: (r) => <Name place={r.place} onClick={() => go({ file: r.place.file, line: 0 })} /> },
              ]}
            />
          )}
        </Waiting>
      ) : (
        <Waiting answer={answer} height={400}>
          {(s) => {
            const by = new Map(s.lines.map((l) => [l.line, l] as const));
            const whole = Math.max(1, ...s.lines.map((l) => l.total.value ?? l.total.samples));
            const numbers = s.found ? s.text.map((_, i) => i + 1) : [...by.keys()].sort((a, b) => a - b);
            return (
              <>
                {!s.found && (
                  <p class="dim">
                    The file is not at hand; <code>statmem view --source-root DIR</code> says where sources are. These are its lines that allocate:
                  </p>
                )}
                <table class="source" aria-label={safe(s.file)}>
                  <thead>
                    <tr>
                      <th scope="col" class="right">
                        itself
                      </th>
                      <th scope="col" class="right">
                        with callees
                      </th>
                      <th scope="col">share</th>
                      <th scope="col" class="right">
                        line
                      </th>
                      <th scope="col">{s.found ? "text" : "function"}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {numbers.map((n) => {
                      const l = by.get(n);
                      return (
                        <tr id={`L${n}`} class={n === state.line ? "here" : ""}>
                          <td class="right">{l && (l.own.value ?? l.own.samples) > 0 && <Value e={l.own} measure={measure} />}</td>
                          <td class="right">{l && <Value e={l.total} measure={measure} />}</td>
                          <td>{l && <Share part={l.total.value ?? l.total.samples} whole={whole} />}</td>
                          <td class="right dim">{n}</td>
                          <td class="code">{s.found ? safe(s.text[n - 1] ?? "", 400) : safe(l?.function ?? "", 200)}</td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </>
            );
          }}
        </Waiting>
      )}
    </>
  );
}
