/** Colours of boxes: by module, the same for the same name in every view; readable in light and dark. */

function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

const cache = new Map<string, string>();

export function moduleColour(module: string, name: string, dark: boolean): string {
  const top = module.split(/[._]{1,2}/)[0] || "";
  const key = `${dark ? "d" : "l"}${top}\u0000${name}`;
  let colour = cache.get(key);
  if (colour === undefined) {
    const hue = top === "" ? 0 : hash(top) % 360;
    const saturation = top === "" ? 0 : 45 + (hash(`${top}s`) % 20);
    const lightness = (dark ? 34 : 74) + (hash(name) % 9) - 4;
    colour = `hsl(${hue} ${saturation}% ${lightness}%)`;
    cache.set(key, colour);
  }
  return colour;
}

export function weightColour(share: number, dark: boolean): string {
  const t = Math.sqrt(Math.min(1, Math.max(0, share)));
  return dark ? `hsl(${48 - 40 * t} 60% ${26 + 14 * t}%)` : `hsl(${50 - 42 * t} 85% ${86 - 22 * t}%)`;
}
