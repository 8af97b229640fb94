// The drawer of a vertex.
import { useEffect, useRef } from "preact/hooks";
import { usePoll } from "../../api/poll";
import type { Accumulator, BackPressure, JobDetails, JobVertex, MetricValue, Subtask, VertexDetails, VertexTaskManagers } from "../../api/types";
import { Banner, Empty, Facts, LoadBar, Moment, Status, Tabs, Waiting } from "../../components/basics";
import { Icon } from "../../components/icon";
import { Table } from "../../components/table";
import { bytes, count, duration, percent, vertexName, rate, toNumber, watermark, watermarkLag } from "../../lib/format";
import { go, link } from "../../lib/router";
import { Tasks } from "../jobs";
import { FlameGraphView } from "./flame-graph";
import { vertexPath, type Loads } from "./loads";
import { LoadCharts, MetricsView } from "./metrics";

const TABS = [
  ["detail", "Detail"],
  ["subtasks", "Subtasks"],
  ["backpressure", "Back pressure"],
  ["watermarks", "Watermarks"],
  ["metrics", "Metrics"],
  ["flamegraph", "Flame graph"],
  ["accumulators", "Accumulators"],
  ["taskmanagers", "Task managers"],
] as const;

interface VertexProps {
  job: JobDetails;
  vertex: JobVertex;
  loads: Loads;
  ended: boolean;
}

export function VertexDrawer({ tab, ...props }: VertexProps & { tab: string }) {
  const { job, vertex, ended } = props;
  const place = useRef<HTMLElement>(null);
  const close = () => go("job", job.jid, "overview");
  const path = vertexPath(job.jid, vertex.id);

  useEffect(() => {
    const before = document.activeElement;
    place.current?.focus({ preventScroll: true });
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
    };
    addEventListener("keydown", pressed);
    return () => {
      removeEventListener("keydown", pressed);
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);

  return (
    <aside ref={place} class="drawer" tabIndex={-1} aria-label={`Vertex ${vertexName(vertex.name)}`}>
      <header class="drawer-head">
        <div>
          <h2>{vertexName(vertex.name)}</h2>
          <p class="head-facts">
            <Status state={vertex.status} />
            <span>parallelism {vertex.parallelism}</span>
            <span>{duration(vertex.duration)}</span>
          </p>
        </div>
        <button type="button" class="icon-button" onClick={close} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      <Tabs current={tab} items={TABS.map(([id, label]) => ({ id, label, href: link("job", job.jid, "overview", vertex.id, id) }))} />
      <div class="drawer-body">
        {tab === "detail" && <Detail {...props} />}
        {tab === "subtasks" && <Subtasks path={path} />}
        {tab === "backpressure" && <BackPressureView path={path} ended={ended} />}
        {tab === "watermarks" && <Watermarks path={path} />}
        {tab === "metrics" && <MetricsView path={path} vertex={vertex} />}
        {tab === "flamegraph" && <FlameGraphView path={path} ended={ended} />}
        {tab === "accumulators" && <Accumulators path={path} />}
        {tab === "taskmanagers" && <TaskManagers path={path} />}
      </div>
    </aside>
  );
}

function Detail({ vertex, loads }: VertexProps) {
  const load = loads.byVertex.get(vertex.id);
  const { metrics } = vertex;
  return (
    <>
      {loads.roots.includes(vertex.id) && (
        <Banner tone="warn" icon="flame">
          Back pressure begins here: the inputs of this vertex wait for it.
        </Banner>
      )}
      <LoadCharts vertex={vertex.id} history={loads.history} />
      <Facts
        rows={[
          ["Records in", `${count(metrics["read-records"])} (${rate(load?.recordsIn ?? NaN)})`],
          ["Records out", `${count(metrics["write-records"])} (${rate(load?.recordsOut ?? NaN)})`],
          ["Bytes in", bytes(metrics["read-bytes"])],
          ["Bytes out", bytes(metrics["write-bytes"])],
          ["Watermark", watermark(load?.watermark ?? NaN)],
          ["Parallelism", `${vertex.parallelism} (at most ${vertex.maxParallelism})`],
          ["Tasks", <Tasks tasks={vertex.tasks} />],
          ["Started", <Moment at={vertex["start-time"]} />],
          ["Ended", <Moment at={vertex["end-time"]} />],
          ["Id", <code>{vertex.id}</code>],
        ]}
      />
    </>
  );
}

function Subtasks({ path }: { path: string }) {
  const { data, error } = usePoll<VertexDetails>(path);
  if (!data) return <Waiting error={error} />;
  const started = (one: Subtask) => one.start_time ?? one["start-time"] ?? -1;
  return (
    <Table
      label="Subtasks"
      rows={data.subtasks}
      id={(one) => one.subtask}
      columns={[
        { title: "Subtask", main: true, sort: (one) => one.subtask, cell: (one) => one.subtask },
        { title: "Status", sort: (one) => one.status, cell: (one) => <Status state={one.status} /> },
        { title: "Records in", numeric: true, sort: (one) => one.metrics["read-records"], cell: (one) => count(one.metrics["read-records"]) },
        { title: "Records out", numeric: true, sort: (one) => one.metrics["write-records"], cell: (one) => count(one.metrics["write-records"]) },
        { title: "Bytes in", numeric: true, sort: (one) => one.metrics["read-bytes"], cell: (one) => bytes(one.metrics["read-bytes"]) },
        { title: "Bytes out", numeric: true, sort: (one) => one.metrics["write-bytes"], cell: (one) => bytes(one.metrics["write-bytes"]) },
        { title: "Attempt", numeric: true, sort: (one) => one.attempt, cell: (one) => one.attempt + 1 },
        { title: "Runs on", sort: (one) => one.endpoint, cell: (one) => one.endpoint },
        { title: "Started", numeric: true, sort: started, cell: (one) => <Moment at={started(one)} /> },
        { title: "Duration", numeric: true, sort: (one) => one.duration, cell: (one) => duration(one.duration) },
      ]}
    />
  );
}

function BackPressureView({ path, ended }: { path: string; ended: boolean }) {
  const { data, error } = usePoll<BackPressure>(ended ? null : `${path}/backpressure`);
  if (ended) return <Empty title="The job has ended">Back pressure is measured while a job runs.</Empty>;
  if (!data) return <Waiting error={error} />;
  if (data.status !== "ok" || data.subtasks.length === 0) {
    return <Empty title="No measurement yet">It takes some seconds after the start of a vertex.</Empty>;
  }
  return (
    <>
      <p class="lead">
        Back pressure of this vertex: <Status state={data["backpressure-level"]} />
      </p>
      <Table
        label="Back pressure of the subtasks"
        rows={data.subtasks}
        id={(one) => one.subtask}
        columns={[
          { title: "Subtask", main: true, sort: (one) => one.subtask, cell: (one) => one.subtask },
          { title: "Share of time", cell: (one) => <LoadBar busy={one.busyRatio} backPressured={one.ratio} /> },
          { title: "Busy", numeric: true, sort: (one) => one.busyRatio, cell: (one) => percent(one.busyRatio) },
          { title: "Back-pressured", numeric: true, sort: (one) => one.ratio, cell: (one) => percent(one.ratio) },
          { title: "Idle", numeric: true, sort: (one) => one.idleRatio, cell: (one) => percent(one.idleRatio) },
          { title: "Level", sort: (one) => one.ratio, cell: (one) => <Status state={one["backpressure-level"]} /> },
        ]}
      />
      <p class="muted small">OK up to 10% of the time, low up to 50%, high above. Measured at <Moment at={data["end-timestamp"]} />.</p>
    </>
  );
}

function Watermarks({ path }: { path: string }) {
  const { data, error } = usePoll<MetricValue[]>(`${path}/watermarks`);
  if (!data) return <Waiting error={error} />;
  if (data.length === 0) {
    return <Empty title="This vertex has no input watermarks">Sources and jobs without event time have none.</Empty>;
  }
  const rows = data.map(({ id, value }) => ({ subtask: Number(id.split(".")[0]), value: toNumber(value) }));
  return (
    <Table
      label="Watermarks"
      rows={rows}
      id={(one) => one.subtask}
      initial={{ title: "Subtask", descending: false }}
      columns={[
        { title: "Subtask", main: true, sort: (one) => one.subtask, cell: (one) => one.subtask },
        { title: "Watermark", numeric: true, sort: (one) => one.value, cell: (one) => watermark(one.value) },
        { title: "Behind the clock", numeric: true, sort: (one) => watermarkLag(one.value), cell: (one) => duration(Math.max(0, watermarkLag(one.value))) },
      ]}
    />
  );
}

function Accumulators({ path }: { path: string }) {
  const { data, error } = usePoll<{ "user-accumulators": Accumulator[] }>(`${path}/accumulators`);
  if (!data) return <Waiting error={error} />;
  if (data["user-accumulators"].length === 0) return <Empty title="The functions of this vertex have no accumulators" />;
  return (
    <Table
      label="Accumulators"
      rows={data["user-accumulators"]}
      id={(one) => one.name}
      columns={[
        { title: "Name", main: true, sort: (one) => one.name, cell: (one) => one.name },
        { title: "Type", sort: (one) => one.type, cell: (one) => one.type },
        { title: "Value", numeric: true, sort: (one) => toNumber(one.value), cell: (one) => <span class="wrap">{one.value}</span> },
      ]}
    />
  );
}

function TaskManagers({ path }: { path: string }) {
  const { data, error } = usePoll<VertexTaskManagers>(`${path}/taskmanagers`);
  if (!data) return <Waiting error={error} />;
  if (data.taskmanagers.length === 0) return <Empty title="No task manager runs this vertex yet" />;
  return (
    <Table
      label="Task managers of the vertex"
      rows={data.taskmanagers}
      id={(one) => one["taskmanager-id"]}
      columns={[
        { title: "Task manager", main: true, cell: (one) => <a href={link("task-managers", one["taskmanager-id"])}>{one["taskmanager-id"]}</a> },
        { title: "Address", cell: (one) => one.endpoint },
        { title: "Status", cell: (one) => <Status state={one.status} /> },
        { title: "Records in", numeric: true, cell: (one) => count(one.metrics["read-records"]) },
        { title: "Records out", numeric: true, cell: (one) => count(one.metrics["write-records"]) },
        { title: "Bytes in", numeric: true, cell: (one) => bytes(one.metrics["read-bytes"]) },
        { title: "Bytes out", numeric: true, cell: (one) => bytes(one.metrics["write-bytes"]) },
        { title: "Subtasks", numeric: true, cell: (one) => <Tasks tasks={one["status-counts"]} /> },
      ]}
    />
  );
}
