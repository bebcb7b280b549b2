/**
 * The flame graph's geometry, apart from drawing. A tree comes in preorder with depths and totals; the layout gives
 * each node its place on a line from 0 to 1 and the end of its subtree, so that drawing can leave out what is too small
 * to see without looking at what is below it.
 */
import type { TreeData } from "../api";

export interface Layout {
  n: number;
  x0: Float64Array;
  x1: Float64Array;
  depth: Uint16Array;
  /** One past the last node of the subtree. */
  end: Uint32Array;
  parent: Int32Array;
  place: Uint32Array;
  maxDepth: number;
  total: number;
}

export function layout(tree: TreeData): Layout {
  const { depth, total, place } = tree.nodes;
  const n = depth.length;
  const out: Layout = {
    n,
    x0: new Float64Array(n),
    x1: new Float64Array(n),
    depth: Uint16Array.from(depth),
    end: new Uint32Array(n),
    parent: new Int32Array(n).fill(-1),
    place: Uint32Array.from(place),
    maxDepth: 0,
    total: total[0] ?? 0,
  };
  const scale = out.total > 0 ? 1 / out.total : 0;
  const path: number[] = [];
  const next: number[] = []; // by depth: where the next child begins
  for (let i = 0; i < n; i++) {
    const d = out.depth[i] ?? 0;
    for (let k = path.length - 1; k >= d; k--) out.end[path[k] ?? 0] = i;
    path.length = d;
    const parent = d > 0 ? (path[d - 1] ?? -1) : -1;
    out.parent[i] = parent;
    const x = parent < 0 ? 0 : (next[d - 1] ?? 0);
    const width = (total[i] ?? 0) * scale;
    out.x0[i] = x;
    /* Rounding must not push a child over its parent's border. */
    out.x1[i] = parent < 0 ? x + width : Math.min(x + width, out.x1[parent] ?? 1);
    if (parent >= 0) next[d - 1] = out.x1[i] ?? x;
    next[d] = x;
    path[d] = i;
    if (d > out.maxDepth) out.maxDepth = d;
  }
  for (const node of path) out.end[node] = n;
  return out;
}

export interface Viewport {
  /** The part of the line that is seen, 0 <= from < to <= 1. */
  from: number;
  to: number;
  width: number;
}

/** Calls `box` for every node that is wide enough, in preorder. Subtrees that cannot be seen are not entered. */
export function visit(l: Layout, v: Viewport, least: number, box: (node: number, x: number, width: number) => void): void {
  const scale = v.width / (v.to - v.from);
  for (let i = 0; i < l.n; ) {
    const x0 = l.x0[i] ?? 0;
    const x1 = l.x1[i] ?? 0;
    const width = (x1 - x0) * scale;
    if (x1 <= v.from || x0 >= v.to || width < least) {
      i = l.end[i] ?? i + 1;
      continue;
    }
    const left = Math.max(0, (x0 - v.from) * scale);
    const right = Math.min(v.width, (x1 - v.from) * scale);
    box(i, left, right - left);
    i++;
  }
}

/** The node at a point of the line and a depth; -1 when there is none. */
export function hit(l: Layout, x: number, depth: number): number {
  for (let i = 0; i < l.n; ) {
    if (x < (l.x0[i] ?? 0) || x >= (l.x1[i] ?? 0)) {
      i = l.end[i] ?? i + 1;
      continue;
    }
    if (l.depth[i] === depth) return i;
    i++;
  }
  return -1;
}

/** Nodes from the root down to `node`. */
export function pathOf(l: Layout, node: number): number[] {
  const out: number[] = [];
  for (let at = node; at >= 0; at = l.parent[at] ?? -1) out.unshift(at);
  return out;
}

export function firstChild(l: Layout, node: number): number {
  return node + 1 < (l.end[node] ?? 0) ? node + 1 : -1;
}

export function nextSibling(l: Layout, node: number): number {
  const parent = l.parent[node] ?? -1;
  const after = l.end[node] ?? l.n;
  return parent >= 0 && after < (l.end[parent] ?? 0) ? after : -1;
}

export function previousSibling(l: Layout, node: number): number {
  const parent = l.parent[node] ?? -1;
  if (parent < 0) return -1;
  let last = -1;
  for (let at = firstChild(l, parent); at >= 0 && at < node; at = nextSibling(l, at)) last = at;
  return last;
}

/** The weight of what a test takes: a node that lies below one that was taken adds nothing. */
export function matchTotal(l: Layout, totals: readonly number[], takes: (place: number) => boolean): { total: number; nodes: number } {
  let total = 0;
  let nodes = 0;
  let covered = 0;
  for (let i = 0; i < l.n; i++) {
    if (!takes(l.place[i] ?? 0)) continue;
    nodes++;
    if (i < covered) continue;
    total += totals[i] ?? 0;
    covered = l.end[i] ?? i + 1;
  }
  return { total, nodes };
}
