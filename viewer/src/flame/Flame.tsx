/**
 * The flame graph on a canvas: callees above the focus, callers below it as icicles (or one of them alone). Drawing reads
 * the layouts only; what the pointer and the keys do is in here, what they mean is the owner's business.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Place, TreeData } from "../api";
import { errorOfSamples, percent, safe, shortName, value } from "../format";
import { moduleColour, weightColour } from "./colour";
import { firstChild, hit, layout, matchTotal, nextSibling, pathOf, previousSibling, visit, type Layout } from "./layout";

const ROW = 20;
const LEAST = 2;

export interface Selection {
  side: "callees" | "callers";
  /** From the focus outwards: places, the focus' end first. */
  path: Place[];
  place: Place;
}

interface Side {
  name: "callees" | "callers";
  tree: TreeData;
  l: Layout;
}

interface Props {
  callees: TreeData | null;
  callers: TreeData | null;
  focus: Place[];
  search: string;
  colour: "module" | "weight";
  onSelect: (s: Selection | null) => void;
  onFocus: (s: Selection) => void;
  onRetract: () => void;
}

interface Hover {
  side: Side;
  node: number;
  x: number;
  y: number;
}

function matcher(tree: TreeData, search: string): ((place: number) => boolean) | null {
  const text = search.trim().toLowerCase();
  if (text === "") return null;
  const takes = tree.places.map((p) => `${p.name} ${p.file} ${p.module}`.toLowerCase().includes(text));
  return (place) => takes[place] ?? false;
}

export function Flame(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [width, setWidth] = useState(800);
  const [window_, setWindow] = useState({ from: 0, to: 1 });
  const [selected, setSelected] = useState<{ side: "callees" | "callers"; node: number } | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const drag = useRef<{ x: number; from: number; to: number; moved: boolean } | null>(null);

  const callees = useMemo<Side | null>(
    () => (props.callees ? { name: "callees", tree: props.callees, l: layout(props.callees) } : null),
    [props.callees],
  );
  const callers = useMemo<Side | null>(
    () => (props.callers ? { name: "callers", tree: props.callers, l: layout(props.callers) } : null),
    [props.callers],
  );
  useEffect(() => {
    setWindow({ from: 0, to: 1 });
    setSelected(null);
    props.onSelect(null);
  }, [props.callees, props.callers]);

  const up = callees ? callees.l.maxDepth : 0;
  const middle = Math.max(1, props.focus.length);
  const down = callers ? callers.l.maxDepth : 0;
  const rows = up + middle + down;
  const height = rows * ROW + 2;
  const seen = Math.min(height, Math.max(240, Math.round(globalThis.innerHeight * 0.68)));

  /** Row of a node, from the top. */
  const rowOf = (side: Side, node: number): number => {
    const depth = side.l.depth[node] ?? 0;
    return side.name === "callees" ? up - depth : up + middle - 1 + depth;
  };

  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(200, node.clientWidth)));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);

  /* The root, or the focus, is what one begins with. */
  useLayoutEffect(() => {
    const node = scroll.current;
    if (!node) return;
    node.scrollTop = callers && !callees ? 0 : Math.max(0, (up + middle) * ROW - seen * (callers && callees ? 0.6 : 1));
    setTop(node.scrollTop);
  }, [callees, callers, seen]);

  useLayoutEffect(() => {
    const node = canvas.current;
    const g = node?.getContext("2d");
    if (!node || !g) return;
    const ratio = window.devicePixelRatio || 1;
    node.width = Math.round(width * ratio);
    node.height = Math.round(seen * ratio);
    node.style.width = `${width}px`;
    node.style.height = `${seen}px`;
    let frame = requestAnimationFrame(() => draw(g, ratio));
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const again = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => draw(g, ratio));
    };
    scheme.addEventListener("change", again);
    return () => {
      cancelAnimationFrame(frame);
      scheme.removeEventListener("change", again);
    };
  });

  function draw(g: CanvasRenderingContext2D, ratio: number): void {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim() || "#222";
    const accent = style.getPropertyValue("--accent").trim() || "#c50";
    const page = style.getPropertyValue("--page").trim() || "#fff";
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = page;
    g.fillRect(0, 0, width, seen);
    g.translate(0, -top);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (const side of [callees, callers]) {
      if (!side) continue;
      const takes = matcher(side.tree, props.search);
      const total = side.l.total || 1;
      visit(side.l, { from: window_.from, to: window_.to, width }, LEAST, (i, x, w) => {
        if (side.name === "callers" && i === 0) return; // the focus is drawn once
        const place = side.tree.places[side.l.place[i] ?? 0];
        if (!place) return;
        const y = rowOf(side, i) * ROW;
        if (y + ROW < top || y > top + seen) return;
        g.globalAlpha = takes && !takes(side.l.place[i] ?? 0) ? 0.3 : 1;
        g.fillStyle =
          i === 0
            ? dark ? "#3a3f47" : "#dfe3e8"
            : props.colour === "weight"
              ? weightColour((side.tree.nodes.total[i] ?? 0) / total, dark)
              : moduleColour(place.module, place.name, dark);
        g.fillRect(x, y, Math.max(1, w - 1), ROW - 1);
        const own = side.tree.nodes.own[i] ?? 0;
        if (side.name === "callees" && own > 0 && w > 6) {
          // What was allocated here itself: a line along the box' outer edge, as wide as its share.
          g.fillStyle = accent;
          g.fillRect(x, y, Math.max(1, (w - 1) * Math.min(1, own / (side.tree.nodes.total[i] || 1))), 2);
        }
        if (w > 30) {
          g.fillStyle = ink;
          const text = shortName(i === 0 && props.focus.length === 0 ? "(all)" : place.name, Math.floor((w - 8) / 6.4));
          g.fillText(text, x + 4, y + ROW / 2, w - 6);
        }
        g.globalAlpha = 1;
      });
    }
    drawFocus(g, ink, dark);
    if (selected) {
      const side = selected.side === "callees" ? callees : callers;
      if (side) outline(g, side, selected.node, accent, 2);
    }
    if (hover) outline(g, hover.side, hover.node, ink, 1);
  }

  function drawFocus(g: CanvasRenderingContext2D, ink: string, dark: boolean): void {
    if (props.focus.length === 0) return;
    props.focus.forEach((place, k) => {
      // Outermost lowest, so that calls go upwards throughout.
      const y = (up + props.focus.length - 1 - k) * ROW;
      g.fillStyle = dark ? "#3a3f47" : "#dfe3e8";
      g.fillRect(0, y, width - 1, ROW - 1);
      g.fillStyle = ink;
      g.fillText(`● ${shortName(place.name, Math.floor((width - 30) / 6.4))}`, 4, y + ROW / 2, width - 8);
    });
  }

  function outline(g: CanvasRenderingContext2D, side: Side, node: number, colour: string, thick: number): void {
    const scale = width / (window_.to - window_.from);
    const x0 = ((side.l.x0[node] ?? 0) - window_.from) * scale;
    const x1 = ((side.l.x1[node] ?? 0) - window_.from) * scale;
    g.strokeStyle = colour;
    g.lineWidth = thick;
    g.strokeRect(x0 + thick / 2, rowOf(side, node) * ROW + thick / 2, Math.max(2, x1 - x0 - 1 - thick), ROW - 1 - thick);
  }

  function at(event: MouseEvent): { side: Side; node: number } | null {
    const rect = canvas.current?.getBoundingClientRect();
    if (!rect) return null;
    const x = window_.from + ((event.clientX - rect.left) / width) * (window_.to - window_.from);
    const row = Math.floor((event.clientY - rect.top + top) / ROW);
    if (callees && row <= up) {
      const node = hit(callees.l, x, up - row);
      return node >= 0 ? { side: callees, node } : null;
    }
    if (callers && row >= up + middle) {
      const node = hit(callers.l, x, row - up - middle + 1);
      return node > 0 ? { side: callers, node } : null;
    }
    return null;
  }

  function selectionOf(side: Side, node: number): Selection | null {
    const path = pathOf(side.l, node)
      .map((i) => side.tree.places[side.l.place[i] ?? 0])
      .filter((p): p is Place => p !== undefined);
    const place = path[path.length - 1];
    return place ? { side: side.name, path, place } : null;
  }

  function select(side: Side, node: number): void {
    setSelected({ side: side.name, node });
    props.onSelect(selectionOf(side, node));
    // Keep it in sight.
    const x0 = side.l.x0[node] ?? 0;
    const x1 = side.l.x1[node] ?? 1;
    if (x1 <= window_.from || x0 >= window_.to) {
      const span = window_.to - window_.from;
      const from = Math.min(Math.max(0, (x0 + x1 - span) / 2), 1 - span);
      setWindow({ from, to: from + span });
    }
    const y = rowOf(side, node) * ROW;
    if (scroll.current && (y < top || y + ROW > top + seen)) scroll.current.scrollTop = Math.max(0, y - seen / 2);
  }

  function zoom(factor: number, centre: number): void {
    const span = Math.min(1, Math.max(1e-7, (window_.to - window_.from) * factor));
    const c = window_.from + centre * (window_.to - window_.from);
    const from = Math.min(Math.max(0, c - centre * span), 1 - span);
    setWindow({ from, to: from + span });
  }

  function onKey(event: KeyboardEvent): void {
    const side = selected?.side === "callers" ? callers : callees;
    if (!side || event.ctrlKey || event.metaKey || event.altKey) return;
    const l = side.l;
    const node = selected?.node ?? 0;
    const outwards = side.name === "callees" ? ["ArrowUp", "k"] : ["ArrowDown", "j"];
    const inwards = side.name === "callees" ? ["ArrowDown", "j"] : ["ArrowUp", "k"];
    let next = -1;
    if (!selected && /^(Arrow|[hjkl]$)/.test(event.key)) next = 0;
    else if (outwards.includes(event.key)) next = firstChild(l, node);
    else if (inwards.includes(event.key)) {
      next = l.parent[node] ?? -1;
      if (next <= 0 && callees && callers) {
        // Across the focus to the other side.
        const other = side.name === "callees" ? callers : callees;
        if (node === 0 || next < 0) {
          const first = firstChild(other.l, 0);
          if (first >= 0) select(other, first);
          event.preventDefault();
          return;
        }
      }
    } else if (event.key === "ArrowRight" || event.key === "l") next = nextSibling(l, node);
    else if (event.key === "ArrowLeft" || event.key === "h") next = previousSibling(l, node);
    else if (event.key === "Enter" && selected) {
      const s = selectionOf(side, node);
      if (s) props.onFocus(s);
      event.preventDefault();
      return;
    } else if (event.key === "Backspace") {
      props.onRetract();
      event.preventDefault();
      return;
    } else if (event.key === "+" || event.key === "=") zoom(0.7, 0.5);
    else if (event.key === "-") zoom(1 / 0.7, 0.5);
    else if (event.key === "0" || event.key === "Escape") setWindow({ from: 0, to: 1 });
    else if (event.key === "z" && selected) setWindow({ from: l.x0[node] ?? 0, to: Math.max((l.x0[node] ?? 0) + 1e-7, l.x1[node] ?? 1) });
    else if (event.key === "c" && selected) {
      const place = side.tree.places[l.place[node] ?? 0];
      if (place) void navigator.clipboard?.writeText(safe(place.name));
    } else return;
    event.preventDefault();
    if (next >= 0) select(side, next);
  }

  const main = callees ?? callers;
  const found = useMemo(() => {
    if (!main) return null;
    const takes = matcher(main.tree, props.search);
    return takes ? matchTotal(main.l, main.tree.nodes.total, takes) : null;
  }, [main, props.search]);

  const tip = hover && describe(hover.side, hover.node);
  return (
    <div class="flame" ref={box}>
      {found && main && (
        <p class="found" role="status">
          {found.nodes} boxes match, {value(found.total, main.tree.measure)} ({percent(found.total, main.l.total)})
        </p>
      )}
      <div class="scroll" ref={scroll} style={{ height: `${seen}px` }} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
      <div style={{ height: `${height}px` }}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label="Flame graph. Arrow keys or H J K L move, Enter focuses, Backspace goes back; the table below has the same data."
        onKeyDown={onKey}
        onWheel={(e) => {
          // The plain wheel scrolls the page.
          if (!(e.ctrlKey || e.metaKey || e.shiftKey)) return;
          e.preventDefault();
          zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2, e.offsetX / width);
        }}
        onPointerDown={(e) => {
          drag.current = { x: e.clientX, ...window_, moved: false };
          canvas.current?.setPointerCapture(e.pointerId);
        }}
        onPointerMove={(e) => {
          const d = drag.current;
          if (d && e.buttons === 1 && Math.abs(e.clientX - d.x) > 3 && d.to - d.from < 1) {
            d.moved = true;
            const span = d.to - d.from;
            const from = Math.min(Math.max(0, d.from - ((e.clientX - d.x) / width) * span), 1 - span);
            setWindow({ from, to: from + span });
            return;
          }
          const hit_ = at(e);
          const rect = box.current?.getBoundingClientRect();
          setHover(hit_ && rect ? { ...hit_, x: e.clientX - rect.left, y: e.clientY - rect.top } : null);
        }}
        onPointerLeave={() => setHover(null)}
        onClick={(e) => {
          const moved = drag.current?.moved;
          drag.current = null;
          if (moved) return;
          const hit_ = at(e);
          if (hit_) select(hit_.side, hit_.node);
          else {
            setSelected(null);
            props.onSelect(null);
          }
        }}
        onDblClick={(e) => {
          const hit_ = at(e);
          const s = hit_ && selectionOf(hit_.side, hit_.node);
          if (s) props.onFocus(s);
        }}
      />
      </div>
      </div>
      {hover && tip && (
        <div class="tip" style={{ left: `${Math.min(hover.x + 12, width - 340)}px`, top: `${hover.y + 18}px` }}>
          {tip}
        </div>
      )}
    </div>
  );
}

function describe(side: Side, node: number) {
  const place = side.tree.places[side.l.place[node] ?? 0];
  if (!place) return null;
  const total = side.tree.nodes.total[node] ?? 0;
  const own = side.tree.nodes.own[node] ?? 0;
  const samples = side.tree.nodes.samples[node] ?? 0;
  return (
    <>
      <strong>{safe(place.name, 600)}</strong>
      {place.file && (
        <span class="dim">
          {safe(place.file, 300)}
          {place.line > 0 && `:${place.line}`}
        </span>
      )}
      <span>
        {value(total, side.tree.measure)} {errorOfSamples(samples)} · {percent(total, side.l.total)} · {samples} samples
      </span>
      {own > 0 && side.name === "callees" && <span>{value(own, side.tree.measure)} allocated here itself</span>}
    </>
  );
}
