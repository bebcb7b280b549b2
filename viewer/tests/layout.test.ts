import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TreeData } from "../src/api";
import { hit, layout, matchTotal, nextSibling, pathOf, previousSibling, visit } from "../src/flame/layout";

interface Node {
  own: number;
  children: Node[];
}

const nodes: fc.Arbitrary<Node> = fc.letrec<{ node: Node }>((tie) => ({
  node: fc.record({ own: fc.nat(20), children: fc.oneof({ depthSize: "small" }, fc.constant([]), fc.array(tie("node"), { maxLength: 4 })) }),
})).node;

function flatten(root: Node): TreeData {
  const out: TreeData = {
    total: { value: 0, low: 0, high: 0, samples: 0, rows: 0, exact: true },
    measure: "bytes",
    unit: 1,
    places: [],
    nodes: { place: [], depth: [], own: [], total: [], samples: [] },
    folded: { nodes: 0, value: 0 },
  };
  const walk = (n: Node, depth: number): number => {
    const i = out.nodes.place.length;
    out.nodes.place.push(i);
    out.nodes.depth.push(depth);
    out.nodes.own.push(n.own);
    out.nodes.samples.push(0);
    out.nodes.total.push(0);
    let total = n.own;
    for (const c of n.children) total += walk(c, depth + 1);
    out.nodes.total[i] = total;
    return total;
  };
  walk(root, 0);
  return out;
}

describe("the layout", () => {
  it("puts children side by side within their parent, as wide as their share", () => {
    fc.assert(
      fc.property(nodes, (root) => {
        const tree = flatten(root);
        const l = layout(tree);
        for (let i = 1; i < l.n; i++) {
          const p = l.parent[i] ?? 0;
          expect(l.depth[i]).toBe((l.depth[p] ?? 0) + 1);
          expect(l.x0[i]).toBeGreaterThanOrEqual(l.x0[p] ?? 0);
          expect(l.x1[i]).toBeLessThanOrEqual(l.x1[p] ?? 0);
          if (l.total > 0) expect((l.x1[i] ?? 0) - (l.x0[i] ?? 0)).toBeCloseTo((tree.nodes.total[i] ?? 0) / l.total, 9);
          const next = nextSibling(l, i);
          if (next >= 0) {
            expect(l.x0[next]).toBeGreaterThanOrEqual((l.x1[i] ?? 0) - 1e-12);
            expect(previousSibling(l, next)).toBe(i);
          }
          expect(pathOf(l, i).length).toBe((l.depth[i] ?? 0) + 1);
        }
      }),
    );
  });
  it("visits what is wide enough and in sight, and nothing else", () => {
    fc.assert(
      fc.property(nodes, fc.double({ min: 0, max: 0.9, noNaN: true }), (root, from) => {
        const l = layout(flatten(root));
        const v = { from, to: from + 0.1, width: 500 };
        const seen = new Set<number>();
        visit(l, v, 2, (i) => seen.add(i));
        for (let i = 0; i < l.n; i++) {
          const wide = ((l.x1[i] ?? 0) - (l.x0[i] ?? 0)) * 5000 >= 2;
          const inSight = (l.x1[i] ?? 0) > v.from && (l.x0[i] ?? 0) < v.to;
          expect(seen.has(i)).toBe(wide && inSight);
        }
      }),
    );
  });
  it("finds the box under a point", () => {
    fc.assert(
      fc.property(nodes, (root) => {
        const l = layout(flatten(root));
        for (let i = 0; i < l.n; i++) {
          const x0 = l.x0[i] ?? 0;
          const x1 = l.x1[i] ?? 0;
          if (x1 - x0 > 1e-9) expect(hit(l, (x0 + x1) / 2, l.depth[i] ?? 0)).toBe(i);
        }
      }),
    );
  });
  it("counts a match below a match once", () => {
    const tree = flatten({ own: 1, children: [{ own: 2, children: [{ own: 3, children: [] }] }, { own: 4, children: [] }] });
    const l = layout(tree);
    expect(matchTotal(l, tree.nodes.total, (p) => p === 1 || p === 2)).toEqual({ total: 5, nodes: 2 });
  });
  it("looks at no more than what can be seen of 500,000 boxes", { timeout: 60000 }, () => {
    const wide = (levels: number): Node => ({ own: 1, children: levels === 0 ? [] : Array.from({ length: 5 }, () => wide(levels - 1)) });
    const tree = flatten(wide(8));
    expect(tree.nodes.place.length).toBe((5 ** 9 - 1) / 4);
    const l = layout(tree);
    let boxes = 0;
    visit(l, { from: 0, to: 1, width: 1400 }, 2, () => boxes++);
    expect(boxes).toBeLessThan(10000); // not timed: the work is bounded by what can be seen
  });
});
