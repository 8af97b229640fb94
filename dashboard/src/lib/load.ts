// Load of vertices: busy, idle and back-pressured shares of time, and the root of back pressure.
import type { AggregatedMetric } from "../api/types";
import { toNumber } from "./format";

export const LOAD_METRICS = [
  "busyTimeMsPerSecond",
  "idleTimeMsPerSecond",
  "backPressuredTimeMsPerSecond",
  "numRecordsInPerSecond",
  "numRecordsOutPerSecond",
  "numBytesInPerSecond",
  "numBytesOutPerSecond",
  "currentInputWatermark",
  "currentOutputWatermark",
];

/** Shares of time between 0 and 1. NaN stands for an unknown value. */
export interface VertexLoad {
  /** Of the busiest subtask. */
  busy: number;
  /** Of the most back-pressured subtask. */
  backPressured: number;
  averages: { busy: number; idle: number; backPressured: number };
  recordsIn: number;
  recordsOut: number;
  bytesIn: number;
  bytesOut: number;
  watermark: number;
}

export const LOW_ABOVE = 0.1;
export const HIGH_ABOVE = 0.5;

export type Level = "ok" | "low" | "high";

/** The level of back pressure, with Flink's bounds. */
export function level(ratio: number): Level {
  if (ratio > HIGH_ABOVE) return "high";
  return ratio > LOW_ABOVE ? "low" : "ok";
}

export function toLoad(metrics: AggregatedMetric[]): VertexLoad {
  const found = new Map(metrics.map((metric) => [metric.id, metric]));
  const value = (id: string, kind: "min" | "max" | "avg" | "sum") => toNumber(found.get(id)?.[kind]);
  const share = (id: string, kind: "max" | "avg") => Math.min(1, value(id, kind) / 1000);
  const input = value("currentInputWatermark", "min");
  return {
    busy: share("busyTimeMsPerSecond", "max"),
    backPressured: share("backPressuredTimeMsPerSecond", "max"),
    averages: {
      busy: share("busyTimeMsPerSecond", "avg"),
      idle: share("idleTimeMsPerSecond", "avg"),
      backPressured: share("backPressuredTimeMsPerSecond", "avg"),
    },
    recordsIn: value("numRecordsInPerSecond", "sum"),
    recordsOut: value("numRecordsOutPerSecond", "sum"),
    bytesIn: value("numBytesInPerSecond", "sum"),
    bytesOut: value("numBytesOutPerSecond", "sum"),
    watermark: Number.isNaN(input) ? value("currentOutputWatermark", "min") : input,
  };
}
