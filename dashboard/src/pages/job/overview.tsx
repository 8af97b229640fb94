// The overview of a job: bottleneck, graph, vertices, and the drawer of a vertex.
import type { JobDetails, JobVertex } from "../../api/types";
import { Banner, Card, Empty, LoadBar, Status } from "../../components/basics";
import { Table, type Column } from "../../components/table";
import { bytes, count, duration, percent, vertexName, rate, watermarkLag } from "../../lib/format";
import { go, link } from "../../lib/router";
import { Tasks } from "../jobs";
import { JobGraph } from "./graph";
import type { Loads } from "./loads";
import { VertexDrawer } from "./vertex";

export function JobOverview({ job, loads, vertex, tab, ended }: {
  job: JobDetails;
  loads: Loads;
  vertex: string | undefined;
  tab: string;
  ended: boolean;
}) {
  const open = (id: string) => go("job", job.jid, "overview", id, vertex ? tab : "detail");
  const selected = job.vertices.find((one) => one.id === vertex);
  return (
    <>
      {!ended && <Bottleneck job={job} loads={loads} />}
      <Card flush>
        {job.plan.nodes.length === 0 ? (
          <Empty title="The job has no vertices yet" />
        ) : (
          <JobGraph job={job} loads={loads} selected={vertex} onSelect={open} />
        )}
      </Card>
      <Card flush title={job.vertices.length === 1 ? "1 vertex" : `${count(job.vertices.length)} vertices`}>
        <Table label="Vertices" columns={columns(job, loads)} rows={job.vertices} id={(one) => one.id} onRow={(one) => open(one.id)} selected={vertex} />
      </Card>
      {selected && <VertexDrawer key={selected.id} job={job} vertex={selected} loads={loads} tab={tab} ended={ended} />}
    </>
  );
}

function Bottleneck({ job, loads }: { job: JobDetails; loads: Loads }) {
  const [root, ...others] = loads.roots;
  if (root === undefined) return null;
  const name = (id: string) => vertexName(job.vertices.find((one) => one.id === id)?.name ?? id);
  const load = loads.byVertex.get(root);
  return (
    <Banner tone="warn" icon="flame">
      <b>
        <a href={link("job", job.jid, "overview", root, "backpressure")}>{name(root)}</a> is the bottleneck.
      </b>{" "}
      {Number.isFinite(load?.busy) && `Its busiest subtask works ${percent(load!.busy)} of the time. `}The vertices before it wait.
      {others.length > 0 && ` Back pressure also begins at ${others.map(name).join(", ")}.`}{" "}
      <a href={link("job", job.jid, "overview", root, "flamegraph")}>See which function is hot.</a>
    </Banner>
  );
}

function columns(job: JobDetails, loads: Loads): Column<JobVertex>[] {
  const load = (vertex: JobVertex) => loads.byVertex.get(vertex.id);
  return [
    {
      title: "Vertex",
      main: true,
      sort: (vertex) => vertex.name,
      cell: (vertex) => (
        <a class="vertex-name" href={link("job", job.jid, "overview", vertex.id)}>
          {vertexName(vertex.name)}
        </a>
      ),
    },
    { title: "Status", sort: (vertex) => vertex.status, cell: (vertex) => <Status state={vertex.status} /> },
    {
      title: "Busy, back-pressured",
      sort: (vertex) => load(vertex)?.busy ?? NaN,
      cell: (vertex) => (
        <span class="load-cell">
          <LoadBar busy={load(vertex)?.averages.busy ?? NaN} backPressured={load(vertex)?.averages.backPressured ?? NaN} />
          {percent(load(vertex)?.busy ?? NaN)}, {percent(load(vertex)?.backPressured ?? NaN)}
        </span>
      ),
    },
    {
      title: "Records in",
      numeric: true,
      sort: (vertex) => vertex.metrics["read-records"],
      cell: (vertex) => <Amount total={count(vertex.metrics["read-records"])} perSecond={load(vertex)?.recordsIn ?? NaN} />,
    },
    {
      title: "Records out",
      numeric: true,
      sort: (vertex) => vertex.metrics["write-records"],
      cell: (vertex) => <Amount total={count(vertex.metrics["write-records"])} perSecond={load(vertex)?.recordsOut ?? NaN} />,
    },
    { title: "Bytes in", numeric: true, sort: (vertex) => vertex.metrics["read-bytes"], cell: (vertex) => <Amount total={bytes(vertex.metrics["read-bytes"])} /> },
    { title: "Bytes out", numeric: true, sort: (vertex) => vertex.metrics["write-bytes"], cell: (vertex) => <Amount total={bytes(vertex.metrics["write-bytes"])} /> },
    {
      title: "Watermark lag",
      numeric: true,
      sort: (vertex) => watermarkLag(load(vertex)?.watermark ?? NaN),
      cell: (vertex) => duration(Math.max(0, watermarkLag(load(vertex)?.watermark ?? NaN))),
    },
    { title: "Subtasks", numeric: true, sort: (vertex) => vertex.parallelism, cell: (vertex) => <Tasks tasks={vertex.tasks} /> },
  ];
}

function Amount({ total, perSecond = NaN }: { total: string; perSecond?: number }) {
  return (
    <span class="amount">
      {total}
      {Number.isFinite(perSecond) && <small>{rate(perSecond)}</small>}
    </span>
  );
}
