/** Live memory over time on uPlot: drag selects a range. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { TimelineData } from "../api";
import { bytes, duration, safe, wallTime } from "../format";

export const COLOURS = ["#2f7ed8", "#e2711d", "#2a9d4a", "#8e5bc4", "#d63384", "#a07a00", "#008b9a", "#7a5548", "#5c6f7b", "#7f9420", "#b5476b", "#3f51b5"];

export function Chart(props: {
  data: TimelineData;
  height: number;
  stacked: boolean;
  wall: number | null;
  peakNs: number | null;
  marks: { ns: number; text: string }[];
  overlay?: { name: string; ns: number[]; values: number[] }[];
  shade?: { from: number; to: number; kind: string }[];
  onRange: (from: number, to: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const node = box.current;
    if (!node) return;
    const { data } = props;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const grid = { stroke: dark ? "#3a3f47" : "#e3e6ea", width: 1 };
    const ink = dark ? "#b8bec6" : "#555";
    const x: number[] = [];
    for (let i = 0; i < data.points; i++) x.push(data.from_ns + data.step_ns * (i + 0.5));
    // The largest value of each span: no peak is lost between two points.
    let lines = data.series.map((s) => s.high);
    if (props.stacked) {
      const sums = new Array<number>(data.points).fill(0);
      lines = data.series.map((s) => s.live.map((v, i) => (sums[i] = (sums[i] ?? 0) + v)));
    }
    const extra = (props.overlay ?? []).map((o) => resample(o, x));
    const label = (ns: number) => (props.wall !== null ? wallTime(props.wall, ns) : duration(ns));
    const series: uPlot.Series[] = data.series.map((s, i) => ({
      label: safe(s.name, 60),
      stroke: COLOURS[i % COLOURS.length] ?? "#888",
      fill: props.stacked || data.series.length === 1 ? `${COLOURS[i % COLOURS.length] ?? "#888888"}${props.stacked ? "66" : "22"}` : undefined,
      width: 1.5,
      points: { show: false },
      value: (_u: uPlot, v: number | null) => (v === null ? "–" : bytes(v)),
    })) as uPlot.Series[];
    const others: uPlot.Series[] = (props.overlay ?? []).map((o, i) => ({
      label: o.name,
      stroke: ink,
      dash: [[8, 4], [4, 4], [1, 3]][i % 3] ?? [4, 4],
      width: 1,
      points: { show: false },
      value: (_u: uPlot, v: number | null) => (v === null ? "–" : bytes(v)),
    }));
    const plot = new uPlot(
      {
        width: Math.max(200, node.clientWidth),
        height: props.height,
        padding: [8, 34, 0, 0], // half of the last label stands there
        scales: { x: { time: false, range: [data.from_ns, data.to_ns] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.05 : 1] } },
        cursor: { drag: { x: true, y: false, setScale: false } },
        legend: { live: true },
        axes: [
          { stroke: ink, grid, ticks: grid, values: (_u, splits) => splits.map(label), space: 90 },
          { stroke: ink, grid, ticks: grid, size: 70, values: (_u, splits) => splits.map(bytes) },
        ],
        series: [{ label: "time", value: (_u, v) => (v === null ? "–" : label(v)) }, ...(props.stacked ? [...series].reverse() : series), ...others],
        hooks: {
          setSelect: [
            (u) => {
              if (u.select.width < 3) return;
              const from = u.posToVal(u.select.left, "x");
              const to = u.posToVal(u.select.left + u.select.width, "x");
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              latest.current.onRange(Math.max(0, from), to);
            },
          ],
          drawClear: [
            (u) => {
              for (const s of latest.current.shade ?? []) {
                const left = u.valToPos(Math.max(s.from, data.from_ns), "x", true);
                const right = u.valToPos(Math.min(s.to, data.to_ns), "x", true);
                u.ctx.fillStyle = s.kind === "collected" ? "#d6336820" : "#2f7ed81c";
                u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
              }
            },
          ],
          draw: [
            (u) => {
              const line = (ns: number, colour: string, text: string) => {
                if (ns < data.from_ns || ns > data.to_ns) return;
                const at = u.valToPos(ns, "x", true);
                u.ctx.save();
                u.ctx.strokeStyle = u.ctx.fillStyle = colour;
                u.ctx.setLineDash([4, 3]);
                u.ctx.beginPath();
                u.ctx.moveTo(at, u.bbox.top);
                u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
                u.ctx.stroke();
                u.ctx.font = `${11 * devicePixelRatio}px system-ui`;
                u.ctx.textAlign = at > u.bbox.left + u.bbox.width * 0.8 ? "right" : "left";
                u.ctx.fillText(text, at + (u.ctx.textAlign === "right" ? -4 : 4), u.bbox.top + 12 * devicePixelRatio);
                u.ctx.restore();
              };
              if (props.peakNs !== null) line(props.peakNs, dark ? "#ff9d5c" : "#c4510b", "peak");
              for (const m of props.marks) line(m.ns, ink, safe(m.text, 30));
            },
          ],
        },
      },
      [x, ...(props.stacked ? [...lines].reverse() : lines), ...extra] as uPlot.AlignedData,
      node,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(200, node.clientWidth), height: latest.current.height }));
    observer.observe(node);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [props.data, props.stacked, props.wall, props.peakNs, props.height, props.overlay, props.shade]);
  return <div class="chart" ref={box} style={{ minHeight: `${props.height + 30}px` }} />;
}

/** The last sample at or before each moment. */
function resample(o: { ns: number[]; values: number[] }, x: number[]): (number | null)[] {
  let k = -1;
  return x.map((t) => {
    while (k + 1 < o.ns.length && (o.ns[k + 1] ?? 0) <= t) k++;
    return k >= 0 ? (o.values[k] ?? null) : null;
  });
}
