/** The current flame graph as SVG text. */
import type { TreeData } from "../api";
import { percent, safe, shortName, value } from "../format";
import { moduleColour } from "./colour";
import { layout, visit } from "./layout";

function escape(text: string): string {
  return safe(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

export function flameSvg(tree: TreeData, width = 1200): string {
  const l = layout(tree);
  const row = 18;
  const height = (l.maxDepth + 1) * row;
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
  ];
  visit(l, { from: 0, to: 1, width }, 0.3, (i, x, w) => {
    const place = tree.places[l.place[i] ?? 0];
    if (!place) return;
    const y = (l.maxDepth - (l.depth[i] ?? 0)) * row;
    const total = tree.nodes.total[i] ?? 0;
    const fill = i === 0 ? "#dfe3e8" : moduleColour(place.module, place.name, false);
    out.push(
      `<g><title>${escape(place.name)} ${escape(place.file)}: ${value(total, tree.measure)} (${percent(total, l.total)})</title>` +
        `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.3, w - 0.5).toFixed(2)}" height="${row - 1}" fill="${fill}"/>` +
        (w > 30 ? `<text x="${(x + 3).toFixed(2)}" y="${y + 13}">${escape(shortName(place.name, Math.floor((w - 6) / 6)))}</text>` : "") +
        `</g>`,
    );
  });
  out.push("</svg>");
  return out.join("\n");
}
