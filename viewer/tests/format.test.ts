import { describe, expect, it } from "vitest";
import { bytes, count, duration, error, errorOfSamples, percent, safe, shortName } from "../src/format";

describe("numbers", () => {
  it("are written as the command line writes them", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(999)).toBe("999 B");
    expect(bytes(1000)).toBe("1.00 kB");
    expect(bytes(44.88e6)).toBe("44.9 MB");
    expect(bytes(658.96e6)).toBe("659 MB");
    expect(bytes(-1500)).toBe("-1.50 kB");
    expect(count(1234567)).toBe("1,234,567");
    expect(duration(0)).toBe("0 s");
    expect(duration(669e6)).toBe("669 ms");
    expect(duration(1.234e9)).toBe("1.23 s");
    expect(duration(123e9)).toBe("2 min 3 s");
    expect(duration(7384e9)).toBe("2 h 3 min");
    expect(percent(1, 3)).toBe("33.3%");
    expect(percent(1, 1e6)).toBe("<0.1%");
    expect(percent(1, 0)).toBe("–");
  });
  it("tell their error", () => {
    expect(error({ value: 80, low: 42, high: 155, samples: 5, rows: 1, exact: false })).toBe("±94%");
    expect(error({ value: 80, low: 80, high: 80, samples: 5, rows: 1, exact: true })).toBe("");
    expect(errorOfSamples(10000)).toBe("±2.0%");
    expect(errorOfSamples(0)).toBe("");
  });
});

describe("hostile names", () => {
  it("lose what would disturb the page's text", () => {
    expect(safe("a\u202eb\u0000c\n")).toBe("a<U+202E>b<U+0000>c<U+000A>");
    expect(safe("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>"); // text stays text: Preact escapes
    expect(safe("x".repeat(10000)).length).toBeLessThan(2100);
  });
  it("are shortened in the middle", () => {
    expect(shortName("Stdlib.List.map", 100)).toBe("Stdlib.List.map");
    expect(shortName("abcdefghij", 7)).toBe("abc…hij");
    expect(shortName("abcdefghij", 2)).toBe("");
  });
});
