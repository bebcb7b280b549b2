import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { both, CONDITIONS, quote, splitTop, time, viewsOf, without } from "../src/filters";

describe("filters built by clicking", () => {
  it("quote what is quoted in the language", () => {
    expect(quote('a "b" \\ c\n')).toBe('"a \\"b\\" \\\\ c\\x0a"');
    expect(quote("a\u0085b\u007f")).toBe('"a\\xc2\\x85b\\x7f"');
  });
  it("quote any name without loss, with no control character left (V11)", () => {
    // As docs/filters.md reads a string: escapes are bytes.
    const read = (text: string) => {
      const bytes: number[] = [];
      for (const part of text.slice(1, -1).match(/\\x[0-9a-f]{2}|\\.|[^\\]+/gsu) ?? [])
        if (/^\\x../.test(part)) bytes.push(Number.parseInt(part.slice(2), 16));
        else bytes.push(...new TextEncoder().encode(part.startsWith("\\") ? part.slice(1) : part));
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));
    };
    const controls = fc.integer({ min: 0x80, max: 0x9f }).map((c) => String.fromCharCode(c));
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.fullUnicodeString(), controls)), (parts) => {
        const name = parts.join("");
        expect(/[\u0000-\u001f\u007f-\u009f]/.test(quote(name))).toBe(false);
        expect(read(quote(name))).toBe(name);
      }),
    );
  });
  it("join and lose clauses", () => {
    expect(both("", "promoted")).toBe("promoted");
    expect(both("promoted", "size >= 1kB")).toBe("promoted; size >= 1kB");
    expect(without(["promoted", "size >= 1kB or samples > 3"], "", 0)).toBe("(size >= 1kB or samples > 3)");
    expect(without(["promoted", 'inside "a or b"'], 'hide ~ "Lwt."', 0)).toBe('inside "a or b"; hide ~ "Lwt."');
    expect(viewsOf('promoted; hide ~ "x and y; z"; collapse module Stdlib')).toBe('hide ~ "x and y; z"; collapse module Stdlib');
  });
  it("are split only where clauses end", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), (names) => {
        const clauses = names.map((n) => `inside ${quote(n)}`);
        expect(splitTop(clauses.join(" and "))).toEqual(clauses);
        expect(splitTop(clauses.join("; "))).toEqual(clauses);
      }),
    );
  });
  it("write times exactly", () => {
    expect(time(1.5e9)).toBe("1.5s");
    expect(time(250e6)).toBe("250ms");
    expect(time(1234)).toBe("1.234us");
    expect(time(7)).toBe("7ns");
  });
  it("offer every kind of condition of the list (V6 to V13)", () => {
    const made = CONDITIONS.map((c) => c.make(c.fields.map((f) => f.choices?.[0] ?? "1")));
    for (const word of ["allocated", "live", "collected", "size", "lifetime", "inside", "not inside", "source", "promoted", "hide", "collapse", "domain"])
      expect(made.some((m) => m.startsWith(word))).toBe(true);
  });
});
