// Samples of metrics since the page was opened. The server keeps no history.

const LIMIT = 600;

export interface Samples {
  times: number[];
  values: number[];
}

/** Series by key, with at most `LIMIT` samples each. */
export class History {
  private series = new Map<string, Samples>();

  add(key: string, time: number, value: number): void {
    let samples = this.series.get(key);
    if (samples === undefined) {
      samples = { times: [], values: [] };
      this.series.set(key, samples);
    }
    if (samples.times.at(-1) === time) return;
    samples.times.push(time);
    samples.values.push(value);
    if (samples.times.length > LIMIT) {
      samples.times.shift();
      samples.values.shift();
    }
  }

  get(key: string): Samples {
    return this.series.get(key) ?? { times: [], values: [] };
  }
}
