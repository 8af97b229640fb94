// Metrics of a vertex as charts over time.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import { usePoll, usePolledCall } from "../../api/poll";
import type { AggregatedMetric, JobVertex, MetricValue } from "../../api/types";
import { Empty, Waiting } from "../../components/basics";
import { Chart, LINE_COLORS, type Line } from "../../components/chart";
import { Icon } from "../../components/icon";
import { bytes, duration, percent, rate, short, toNumber, watermarkLag } from "../../lib/format";
import { History } from "../../lib/history";
import { sampleKey, type Sampled } from "./loads";

/** The load of a vertex, its rates and the lag of its watermark. */
export function LoadCharts({ vertex, history }: { vertex: string; history: History }) {
  const samples = (what: Sampled) => history.get(sampleKey(vertex, what));
  const times = samples("busy").times;
  if (!samples("busy").values.some(Number.isFinite)) return <p class="muted small">The vertex has not reported its load yet.</p>;
  if (times.length < 2) return <p class="muted small">The charts begin when this page is opened.</p>;
  const line = (label: string, color: string, what: Sampled): Line => ({ label, color, values: samples(what).values });
  const lags = samples("watermark").values.map((value, index) => watermarkLag(value, times[index]));
  return (
    <div class="charts">
      <Chart
        title="Time"
        times={times}
        format={percent}
        lines={[line("busy", "busy", "busy"), line("back-pressured", "pressed", "backPressured"), line("idle", "idle-line", "idle")]}
      />
      <Chart title="Records" times={times} format={rate} lines={[line("in", "line-1", "recordsIn"), line("out", "line-2", "recordsOut")]} />
      <Chart title="Bytes" times={times} format={(value) => (Number.isFinite(value) ? `${bytes(value)}/s` : "–")} lines={[line("in", "line-1", "bytesIn"), line("out", "line-2", "bytesOut")]} />
      {lags.some(Number.isFinite) && (
        <Chart title="Watermark behind the clock" times={times} format={(value) => duration(Math.max(0, value))} lines={[{ label: "lag", color: "line-3", values: lags }]} />
      )}
    </div>
  );
}

// With more subtasks a chart shows the minimum, average and maximum instead of a line per subtask.
const MOST_LINES = LINE_COLORS.length;
const FIRST_METRICS = ["numRecordsInPerSecond", "numRecordsOutPerSecond", "busyTimeMsPerSecond"];

export function MetricsView({ path, vertex }: { path: string; vertex: JobVertex }) {
  const names = usePoll<{ id: string }[]>(`${path}/subtasks/metrics`);
  const [chosen, setChosen] = useState<string[]>();
  const known = (names.data ?? []).map((metric) => metric.id).sort();
  useEffect(() => {
    if (chosen || known.length === 0) return;
    const first = FIRST_METRICS.filter((name) => known.includes(name));
    setChosen(first.length > 0 ? first : known.slice(0, 2));
  }, [known.length]);
  const { history, subtasks } = useMetricHistory(path, vertex.parallelism, chosen ?? []);

  if (!names.data) return <Waiting error={names.error} />;
  if (known.length === 0) return <Empty title="This vertex reports no metrics yet" />;
  return (
    <>
      <Picker known={known.filter((name) => !chosen?.includes(name))} onPick={(name) => setChosen([...(chosen ?? []), name])} />
      <div class="charts">
        {(chosen ?? []).map((name) => (
          <div key={name} class="removable">
            <MetricChart name={name} history={history} lines={subtasks} />
            <button type="button" class="icon-button" aria-label={`Remove ${name}`} onClick={() => setChosen(chosen?.filter((one) => one !== name))}>
              <Icon name="close" size={15} />
            </button>
          </div>
        ))}
      </div>
      {chosen?.length === 0 && <Empty title="Choose a metric">Add metrics from the list above.</Empty>}
    </>
  );
}

function Picker({ known, onPick }: { known: string[]; onPick: (name: string) => void }) {
  return (
    <label class="field inline">
      <span>Add a chart</span>
      <select
        value=""
        onChange={(event) => {
          const name = event.currentTarget.value;
          event.currentTarget.value = "";
          if (name) onPick(name);
        }}
      >
        <option value="">{known.length} metrics …</option>
        {known.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function useMetricHistory(path: string, parallelism: number, names: string[]): { history: History; subtasks: string[] } {
  const history = useRef(new History());
  const single = parallelism <= MOST_LINES;
  const lines = single ? Array.from({ length: parallelism }, (_, subtask) => String(subtask)) : ["min", "avg", "max"];
  usePolledCall(names.length > 0 ? `${path}:${names.join()}` : null, async (signal) => {
    const now = Date.now();
    if (single) {
      const ids = names.flatMap((name) => lines.map((line) => `${line}.${name}`));
      for (const { id, value } of await get<MetricValue[]>(`${path}/metrics?get=${ids.map(encodeURIComponent).join(",")}`, signal)) {
        history.current.add(id, now, toNumber(value));
      }
    } else {
      for (const metric of await get<AggregatedMetric[]>(`${path}/subtasks/metrics?get=${names.map(encodeURIComponent).join(",")}`, signal)) {
        for (const line of ["min", "avg", "max"] as const) history.current.add(`${line}.${metric.id}`, now, toNumber(metric[line]));
      }
    }
    return now;
  });
  return { history: history.current, subtasks: lines };
}

function MetricChart({ name, history, lines }: { name: string; history: History; lines: string[] }) {
  const samples = lines.map((line) => history.get(`${line}.${name}`));
  const longest = samples.reduce((a, b) => (a.times.length >= b.times.length ? a : b), { times: [], values: [] });
  return (
    <Chart
      title={name}
      times={longest.times}
      format={unit(name)}
      lines={samples.map(({ values }, index) => ({
        label: lines[index] ?? "",
        color: LINE_COLORS[index % LINE_COLORS.length] ?? "line-1",
        // A subtask that began later has fewer values.
        values: [...new Array<number>(longest.times.length - values.length).fill(NaN), ...values],
      }))}
    />
  );
}

function unit(name: string): (value: number) => string {
  if (/Bytes|Size|Memory/i.test(name)) return bytes;
  if (/TimeMsPerSecond$/.test(name)) return (value) => (Number.isFinite(value) ? `${Math.round(value)} ms/s` : "–");
  if (/PerSecond$/.test(name)) return rate;
  return short;
}
