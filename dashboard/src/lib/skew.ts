// The skew of values over subtasks.

/** Flink's figure in percent: the mean distance from the average, in relation to the average, at most 100. */
export function skew(values: number[]): number {
  const known = values.map((value) => (Number.isFinite(value) ? value : 0));
  const average = known.reduce((a, b) => a + b, 0) / known.length;
  if (known.length < 2 || average === 0) return 0;
  const distance = known.reduce((sum, value) => sum + Math.abs(value - average), 0) / known.length;
  return Math.min(100, (100 * distance) / average);
}
