import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULTS, parse, print, VIEWS, type State } from "../src/state";

const states: fc.Arbitrary<State> = fc.record({
  view: fc.constantFrom(...VIEWS),
  trace: fc.nat(9),
  filter: fc.string(),
  weight: fc.constantFrom("allocated", "live@peak", "temporary<10ms"),
  key: fc.constantFrom("function", "line"),
  focus: fc.array(fc.string({ minLength: 1 }), { maxLength: 5 }),
  dir: fc.constantFrom("callees", "callers"),
  order: fc.constantFrom("weight", "name"),
  fold: fc.boolean(),
  colour: fc.constantFrom("module", "weight"),
  series: fc.constantFrom("total", "domain"),
  and: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
  from: fc.option(fc.nat(), { nil: null }),
  to: fc.option(fc.nat(), { nil: null }),
  wall: fc.boolean(),
  by: fc.constantFrom("function", "size"),
  search: fc.string(),
  file: fc.string(),
  line: fc.nat(9999),
  b: fc.nat(3),
  filterB: fc.string(),
  normalise: fc.constantFrom("none", "total"),
}) as fc.Arbitrary<State>;

describe("the address", () => {
  it("holds every state", () => {
    fc.assert(fc.property(states, (s) => {
        expect(parse(print(s))).toEqual(s);
      }));
  });
  it("is short for the first view, and takes whatever is there", () => {
    expect(print(DEFAULTS)).toBe("");
    expect(parse("?view=nonsense&trace=x&dir=7&from=abc")).toEqual(DEFAULTS);
  });
});
