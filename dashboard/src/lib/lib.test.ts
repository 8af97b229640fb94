import { describe, expect, it } from "vitest";
import { bytes, count, duration, short, vertexName, watermark, watermarkLag } from "./format";
import { parseFailure } from "./exceptions";
import { History } from "./history";
import { layOut } from "./layout";
import { level, toLoad } from "./load";
import { skew } from "./skew";
import { shellWords } from "./words";

describe("format", () => {
  it("shortens numbers", () => {
    expect([0, 1.25, 999, 1000, 12_500, 999_999, -2_000_000, NaN].map(short)).toEqual(["0", "1.3", "999", "1 k", "12.5 k", "1 M", "-2 M", "–"]);
    expect(count(1_234_567.4)).toBe("1,234,567");
  });
  it("writes sizes and durations with units", () => {
    expect([0, 999, 1_500, 2_000_000_000, -1].map(bytes)).toEqual(["0 B", "999 B", "1.5 kB", "2 GB", "–"]);
    expect([-1, 12, 4_200, 59_999, 60_000, 192_000, 7_200_000, 187_200_000].map(duration)).toEqual(["–", "12 ms", "4.2 s", "60 s", "1m", "3m 12s", "2h", "2d 4h"]);
  });
  it("knows that the first and last watermarks are no times", () => {
    expect(watermark(-(2 ** 63))).toBe("No watermark");
    expect(watermark(2 ** 63)).toBe("End of input");
    expect(watermarkLag(2 ** 63)).toBeNaN();
    expect(watermarkLag(1_000, 3_500)).toBe(2_500);
  });
  it("draws arrows between the operators of a chain", () => {
    expect(vertexName("Source: a -> b -> (c, d)")).toBe("Source: a → b → (c, d)");
  });
});

describe("load", () => {
  it("has the levels of Flink", () => {
    expect([0, 0.1, 0.11, 0.5, 0.51].map(level)).toEqual(["ok", "ok", "low", "low", "high"]);
  });
  it("reads shares of time and keeps unknown values apart from zero", () => {
    const read = toLoad([{ id: "busyTimeMsPerSecond", min: 0, max: 900, avg: 450, sum: 900 }, { id: "backPressuredTimeMsPerSecond", max: "NaN" }]);
    expect(read.busy).toBe(0.9);
    expect(read.averages.busy).toBe(0.45);
    expect(read.backPressured).toBeNaN();
  });
});

describe("skew", () => {
  it("is Flink's figure", () => {
    expect(skew([23, 3, 10])).toBeCloseTo(61.1, 1);
    expect(skew([300, 0, 0])).toBe(100);
    expect(skew([0, 0, 0])).toBe(0);
    expect(skew([7])).toBe(0);
  });
});

describe("history", () => {
  it("is bounded", () => {
    const history = new History();
    for (let time = 0; time < 2_000; time++) history.add("a", time, time);
    expect(history.get("a").times).toHaveLength(600);
    expect(history.get("a").values.at(-1)).toBe(1_999);
  });
});

describe("exceptions", () => {
  const text = [
    "Traceback (most recent call last):",
    '  File "/home/ada/orders.py", line 4, in price',
    "    return RATES[order]",
    '  File "/usr/lib/python3.11/site-packages/lib.py", line 1, in f',
    "    raise KeyError",
    "KeyError: 'XBT'",
    "",
    "Job 'orders' failed: operator 'price' called price (/home/ada/orders.py:3) on the record Order(1, 'a, which raised'), which raised the error above.",
  ].join("\n");

  it("separates the user's frames, the record and the explanation", () => {
    const failure = parseFailure("KeyError", text);
    expect(failure.title).toBe("KeyError: 'XBT'");
    expect(failure.record).toBe("Order(1, 'a, which raised')");
    expect(failure.lines.filter((line) => line.own).map((line) => line.text.trim())).toEqual(['File "/home/ada/orders.py", line 4, in price', "return RATES[order]"]);
    expect(failure.explanation).toContain("operator 'price'");
  });
  it("shows other texts as they are", () => {
    const failure = parseFailure("X", "The driver lost all slots.\nsecond line");
    expect(failure.title).toBe("The driver lost all slots.");
    expect(failure.record).toBeNull();
  });
});

describe("layout", () => {
  it("places every vertex once and connects them", () => {
    const placed = layOut(
      [
        { id: "a", description: "", parallelism: 1 },
        { id: "b", description: "", parallelism: 1, inputs: [{ id: "a", ship_strategy: "HASH" }, { id: "a", ship_strategy: "FORWARD" }] },
      ],
      "LR",
    );
    expect(placed.nodes.map((node) => node.id)).toEqual(["a", "b"]);
    expect(placed.edges.map((edge) => edge.strategy)).toEqual(["HASH", "FORWARD"]);
    expect(placed.nodes[0]!.x).toBeLessThan(placed.nodes[1]!.x);
  });
  it("is as large as its picture, so that it can be shown in the middle", () => {
    const steps = Array.from({ length: 60 }, (_, number) => number);
    const nodes = steps.map((number) => ({
      id: `${number}`,
      description: "",
      parallelism: 8,
      inputs: number < 6 ? [] : [number - 6, (7 * number) % (number - 5)].map((id) => ({ id: `${id}`, ship_strategy: "HASH" })),
    }));
    const { nodes: placed, edges, sizes, width, height } = layOut(nodes, "LR");
    // Ways of edges may bend around vertices.
    const bends = edges.flatMap(({ path }) => [...path.matchAll(/[M ](-?[\d.]+),(-?[\d.]+)/g)].map((point) => ({ x: Number(point[1]), y: Number(point[2]) })));
    const xs = [...placed.flatMap(({ x }) => [x, x + sizes.width]), ...bends.map(({ x }) => x)];
    const ys = [...placed.flatMap(({ y }) => [y, y + sizes.height]), ...bends.map(({ y }) => y)];
    expect(Math.min(...xs)).toBeCloseTo(18);
    expect(Math.min(...ys)).toBeCloseTo(18);
    expect(Math.max(...xs)).toBeCloseTo(width - 18);
    expect(Math.max(...ys)).toBeCloseTo(height - 18);
  });
});

describe("arguments of a program", () => {
  it("are split as in a shell", () => {
    expect(shellWords("  --input /data\t-n 3 ")).toEqual(["--input", "/data", "-n", "3"]);
    expect(shellWords(`--name "a b" 'c "d"' e\\ f ""`)).toEqual(["--name", "a b", 'c "d"', "e f", ""]);
    expect(shellWords("")).toEqual([]);
  });
  it("need both ends of a quote", () => {
    expect(() => shellWords("'a b")).toThrow("has no end");
  });
});
