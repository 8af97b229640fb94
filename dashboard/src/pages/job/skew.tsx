// Data skew: how evenly records, busy time and state are spread over the subtasks of a vertex.
import { useState } from "preact/hooks";
import { get, inParallel } from "../../api/client";
import { usePoll, usePolledCall } from "../../api/poll";
import type { Checkpoints, CheckpointSubtasks, JobDetails, VertexDetails } from "../../api/types";
import { Banner, Card, Empty, Waiting } from "../../components/basics";
import { bytes, duration, vertexName, short, toNumber } from "../../lib/format";
import { link } from "../../lib/router";
import { skew } from "../../lib/skew";
import { vertexPath } from "./loads";

type Measure = "records" | "busy" | "state";

const MEASURES: { id: Measure; label: string; format: (value: number) => string }[] = [
  { id: "records", label: "Records in", format: short },
  { id: "busy", label: "Busy time", format: duration },
  { id: "state", label: "State", format: bytes },
];

interface VertexValues {
  vertex: string;
  name: string;
  values: number[];
}

const PARALLEL_CALLS = 6;
const NOTABLE = 30;

export function SkewPage({ job }: { job: JobDetails }) {
  const [measure, setMeasure] = useState<Measure>("records");
  const { label, format } = MEASURES.find((one) => one.id === measure)!;
  return (
    <Card
      title="Data skew"
      aside={
        <div class="segments" role="group" aria-label="Figure">
          {MEASURES.map((one) => (
            <button key={one.id} type="button" aria-pressed={measure === one.id} onClick={() => setMeasure(one.id)}>
              {one.label}
            </button>
          ))}
        </div>
      }
    >
      <p class="muted small">
        0% means that all subtasks have the same share, 100% that a few have everything. A skewed vertex is as slow as its
        busiest subtask.
      </p>
      {measure === "state" ? (
        <StateSkew job={job} format={format} />
      ) : (
        <TaskSkew key={measure} job={job} measure={measure} label={label} format={format} />
      )}
    </Card>
  );
}

function TaskSkew({ job, measure, label, format }: { job: JobDetails; measure: Measure; label: string; format: (value: number) => string }) {
  const { data, error } = usePolledCall(`${job.jid}:${measure}`, (signal) =>
    inParallel(job.vertices, PARALLEL_CALLS, async (vertex): Promise<VertexValues> => {
      const { subtasks } = await get<VertexDetails>(vertexPath(job.jid, vertex.id), signal);
      const values = subtasks.map(({ metrics }) =>
        measure === "records" ? metrics["read-records"] : toNumber(metrics["accumulated-busy-time"]),
      );
      return { vertex: vertex.id, name: vertexName(vertex.name), values };
    }),
  );
  return data ? <Skews job={job} all={data} label={label} format={format} /> : <Waiting error={error} />;
}

/** State by subtask, from the latest completed checkpoint. */
function StateSkew({ job, format }: { job: JobDetails; format: (value: number) => string }) {
  const path = `/jobs/${job.jid}/checkpoints`;
  const checkpoints = usePoll<Checkpoints>(path);
  const latest = checkpoints.data?.latest.completed?.id;
  const { data, error } = usePolledCall(latest === undefined ? null : `${path}:${latest}`, (signal) =>
    inParallel(job.vertices, PARALLEL_CALLS, async (vertex): Promise<VertexValues> => {
      const { subtasks } = await get<CheckpointSubtasks>(`${path}/details/${latest}/subtasks/${vertex.id}`, signal);
      return { vertex: vertex.id, name: vertexName(vertex.name), values: subtasks.map((one) => one.state_size ?? 0) };
    }),
    { once: true },
  );
  if (checkpoints.data && latest === undefined) {
    return <Empty title="No completed checkpoint">Sizes of state come from the latest completed checkpoint.</Empty>;
  }
  return data ? <Skews job={job} all={data} label="State" format={format} /> : <Waiting error={error ?? checkpoints.error} />;
}

function Skews({ job, all, label, format }: { job: JobDetails; all: VertexValues[]; label: string; format: (value: number) => string }) {
  const spread = all
    .filter(({ values }) => values.length > 1 && values.some((value) => value > 0))
    .map((one) => ({ ...one, skew: skew(one.values) }))
    .sort((a, b) => b.skew - a.skew);
  if (spread.length === 0) {
    return <Empty title="Nothing to compare">No vertex with more than one subtask has a value for this figure.</Empty>;
  }
  const worst = spread[0]!;
  return (
    <>
      {worst.skew >= NOTABLE && (
        <Banner tone="warn">
          <b>{worst.name}</b> is skewed. If a few keys have most records, aggregate in two steps with a salted key; without keys, add{" "}
          <code>rebalance()</code>.
        </Banner>
      )}
      <div class="skews">
        {spread.map((one) => (
          <section key={one.vertex} class="skew">
            <header>
              <a href={link("job", job.jid, "overview", one.vertex, "subtasks")}>{one.name}</a>
              <b class={one.skew >= NOTABLE ? "tone-bad" : ""}>{Math.round(one.skew)}%</b>
            </header>
            <Bars values={one.values} label={label} format={format} />
          </section>
        ))}
      </div>
    </>
  );
}

function Bars({ values, label, format }: { values: number[]; label: string; format: (value: number) => string }) {
  const most = Math.max(...values, 1);
  return (
    <ol class="skew-bars" aria-label={`${label} by subtask`}>
      {values.map((value, subtask) => (
        <li key={subtask} title={`subtask ${subtask}: ${format(value)}`}>
          <span>{subtask}</span>
          <i>
            <i style={{ width: `${(100 * (value || 0)) / most}%` }} />
          </i>
          <span>{format(value)}</span>
        </li>
      ))}
    </ol>
  );
}
