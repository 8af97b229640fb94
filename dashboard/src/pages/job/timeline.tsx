// The states of a job and its vertices over time.
import { useState } from "preact/hooks";
import { usePoll } from "../../api/poll";
import type { JobDetails, SubtaskTimes } from "../../api/types";
import { Card, Empty, Waiting } from "../../components/basics";
import { Icon } from "../../components/icon";
import { duration, isTime, moment, vertexName } from "../../lib/format";
import { vertexPath } from "./loads";

interface Span {
  state: string;
  from: number;
  to: number;
}

interface Range {
  from: number;
  to: number;
}

const STATES = ["CREATED", "INITIALIZING", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELED", "FAILED"];
const TICKS = 5;

export function TimelinePage({ job }: { job: JobDetails }) {
  const [open, setOpen] = useState<string>();
  const now = isTime(job["end-time"]) ? job["end-time"] : (job.now ?? job["start-time"] + job.duration);
  const range = { from: job["start-time"], to: Math.max(now, job["start-time"] + 1) };
  const jobSpans = toSpans(job.timestamps ?? {}, now);
  if (job.vertices.length === 0) return <Empty title="The job has no vertices yet" />;
  return (
    <Card title="Timeline" aside={<Legend />}>
      <div class="timeline">
        <Axis range={range} />
        {jobSpans.length > 0 && <Row label={<b>Job</b>} spans={jobSpans} range={range} />}
        {job.vertices.map((vertex) => {
          const end = isTime(vertex["end-time"]) ? vertex["end-time"] : now;
          const started = isTime(vertex["start-time"]);
          return [
            <Row
              key={vertex.id}
              range={range}
              spans={started ? [{ state: vertex.status, from: vertex["start-time"], to: end }] : []}
              label={
                <button type="button" class={`expander ${open === vertex.id ? "open" : ""}`} onClick={() => setOpen(open === vertex.id ? undefined : vertex.id)}>
                  <Icon name="right" size={15} />
                  {vertexName(vertex.name)}
                </button>
              }
            />,
            open === vertex.id && <SubtaskRows key={`${vertex.id}-subtasks`} path={vertexPath(job.jid, vertex.id)} range={range} now={now} />,
          ];
        })}
      </div>
    </Card>
  );
}

function Legend() {
  return (
    <span class="legend">
      {["scheduled", "running", "finished", "failed"].map((state) => (
        <span key={state}>
          <i class={`span-${state}`} />
          {state}
        </span>
      ))}
    </span>
  );
}

function SubtaskRows({ path, range, now }: { path: string; range: Range; now: number }) {
  const { data, error } = usePoll<SubtaskTimes>(`${path}/subtasktimes`);
  if (!data) return <Waiting error={error} />;
  return (
    <>
      {data.subtasks.map((subtask) => (
        <Row
          key={subtask.subtask}
          range={range}
          spans={toSpans(subtask.timestamps, now)}
          label={
            <span class="subtask-label">
              subtask {subtask.subtask}
              {subtask.endpoint && <small>{subtask.endpoint}</small>}
            </span>
          }
        />
      ))}
    </>
  );
}

/** A state lasts until the next one begins. A final state has no length. */
function toSpans(timestamps: Record<string, number>, now: number): Span[] {
  const reached = Object.entries(timestamps)
    .filter(([, time]) => isTime(time))
    .sort((a, b) => a[1] - b[1] || STATES.indexOf(a[0]) - STATES.indexOf(b[0]));
  return reached.map(([state, from], index) => ({ state, from, to: reached[index + 1]?.[1] ?? now }));
}

function Row({ label, spans, range }: { label: preact.ComponentChildren; spans: Span[]; range: Range }) {
  const place = (time: number) => (100 * (time - range.from)) / (range.to - range.from);
  return (
    <div class="timeline-row">
      <div class="timeline-label">{label}</div>
      <div class="timeline-track">
        {spans.map((span, index) => (
          <i
            key={index}
            class={`span span-${span.state.toLowerCase()}`}
            style={{ left: `${Math.max(0, place(span.from))}%`, width: `${Math.max(0.4, place(span.to) - Math.max(0, place(span.from)))}%` }}
            title={`${span.state.toLowerCase()}: ${moment(span.from)}, ${duration(span.to - span.from)}`}
          />
        ))}
      </div>
    </div>
  );
}

function Axis({ range }: { range: Range }) {
  return (
    <div class="timeline-row axis">
      <div class="timeline-label" />
      <div class="timeline-track">
        {Array.from({ length: TICKS }, (_, tick) => (
          <span key={tick} style={{ left: `${(100 * tick) / (TICKS - 1)}%` }}>
            {moment(range.from + ((range.to - range.from) * tick) / (TICKS - 1))}
          </span>
        ))}
      </div>
    </div>
  );
}
