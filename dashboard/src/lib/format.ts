// Numbers, sizes, durations and times as text for people.

export const NONE = "–";

/** A number of the API. Flink sends NaN as text. */
export function toNumber(value: number | string | null | undefined): number {
  return value === null || value === undefined || value === "" ? NaN : Number(value);
}

export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

/** A number with at most three digits and a unit: 950, 1.25 k, 12.5 M. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  let amount = Math.abs(value);
  if (amount < 1000) return String(Number(value.toFixed(amount < 10 ? 1 : 0)));
  for (const unit of ["k", "M", "G", "T"]) {
    amount /= 1000;
    if (amount < 999.5 || unit === "T") return `${value < 0 ? "-" : ""}${digits(amount)} ${unit}`;
  }
  return NONE;
}

function digits(amount: number): string {
  return String(Number(amount.toFixed(amount < 10 ? 2 : amount < 100 ? 1 : 0)));
}

export function rate(value: number): string {
  return Number.isFinite(value) ? `${short(value)}/s` : NONE;
}

/** Bytes in powers of 1000, as the messages of Firesteel. */
export function bytes(value: number): string {
  if (!Number.isFinite(value) || value < 0) return NONE;
  if (value < 1000) return `${Math.round(value)} B`;
  let amount = value;
  for (const unit of ["kB", "MB", "GB", "TB"]) {
    amount /= 1000;
    if (amount < 999.5 || unit === "TB") return `${digits(amount)} ${unit}`;
  }
  return NONE;
}

export function percent(ratio: number): string {
  return Number.isFinite(ratio) ? `${Math.round(ratio * 100)}%` : NONE;
}

/** Milliseconds as the two largest units: 350 ms, 4.2 s, 3m 12s, 2d 4h. */
export function duration(millis: number): string {
  if (!Number.isFinite(millis) || millis < 0) return NONE;
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60_000) return `${Number((millis / 1000).toFixed(millis < 10_000 ? 1 : 0))} s`;
  const seconds = Math.floor(millis / 1000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([amount]) => amount > 0);
  return units
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(" ");
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

/** The time of day, with the date if it is not today. */
export function moment(millis: number | null | undefined, now: number = Date.now()): string {
  if (!isTime(millis)) return NONE;
  const time = new Date(millis);
  const today = new Date(now).toDateString() === time.toDateString();
  return today ? CLOCK.format(time) : `${DAY.format(time)}, ${CLOCK.format(time)}`;
}

export function fullMoment(millis: number | null | undefined): string {
  return isTime(millis) ? FULL.format(new Date(millis)) : "";
}

export function isTime(millis: number | null | undefined): millis is number {
  return millis !== null && millis !== undefined && Number.isFinite(millis) && millis > 0 && millis < 8.64e15;
}

const SMALLEST_WATERMARK = -(2 ** 62);

/** Milliseconds that a watermark is behind the clock, or NaN if there is none yet. */
export function watermarkLag(watermark: number, now: number = Date.now()): number {
  return isTime(watermark) ? now - watermark : NaN;
}

export function watermark(value: number): string {
  if (!Number.isFinite(value) || value <= SMALLEST_WATERMARK) return "No watermark";
  if (value >= -SMALLEST_WATERMARK) return "End of input";
  return isTime(value) ? new Date(value).toISOString().replace("T", " ").replace("Z", " UTC") : count(value);
}

/** The name of a vertex, with arrows between the operators of its chain. */
export function vertexName(name: string): string {
  return name.replaceAll(" -> ", " → ");
}
