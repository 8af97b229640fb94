// Task managers: the list, and one of them with its slots, memory, logs and threads.
import { usePoll } from "../api/poll";
import type { JobSummary, TaskManager, TaskManagerDetails } from "../api/types";
import { Card, Empty, Facts, Meter, Moment, Stat, Tabs, Waiting } from "../components/basics";
import { Table, type Column } from "../components/table";
import { LogView } from "../components/text-view";
import { bytes, count, duration, isTime } from "../lib/format";
import { go, link } from "../lib/router";
import { LogFiles, ProfilerView, ThreadDumpView } from "./files";

const COLUMNS: Column<TaskManager>[] = [
  {
    title: "Task manager",
    main: true,
    sort: (worker) => worker.id,
    cell: (worker) => (
      <a class="job-name" href={link("task-managers", worker.id)}>
        {worker.id}
        <small class="mono">{worker.path}</small>
      </a>
    ),
  },
  { title: "Slots", sort: (worker) => worker.slotsNumber - worker.freeSlots, cell: (worker) => <Slots worker={worker} /> },
  { title: "Tasks", numeric: true, sort: (worker) => worker.assignedTasks ?? 0, cell: (worker) => count(worker.assignedTasks ?? 0) },
  { title: "CPU cores", numeric: true, sort: (worker) => worker.hardware.cpuCores, cell: (worker) => count(worker.hardware.cpuCores) },
  { title: "Memory", numeric: true, sort: (worker) => worker.hardware.physicalMemory, cell: (worker) => bytes(worker.hardware.physicalMemory) },
  {
    title: "Heartbeat",
    numeric: true,
    sort: (worker) => worker.timeSinceLastHeartbeat,
    cell: (worker) => <Moment at={worker.timeSinceLastHeartbeat} />,
  },
];

/** One square per slot; the filled ones are in use. */
function Slots({ worker }: { worker: TaskManager }) {
  const used = worker.slotsNumber - worker.freeSlots;
  const title = `${used} of ${worker.slotsNumber} slots in use`;
  if (worker.slotsNumber > 16) return <Meter ratio={used / worker.slotsNumber} label={title} />;
  return (
    <span class="slots" role="img" aria-label={title} title={title}>
      {Array.from({ length: worker.slotsNumber }, (_, slot) => (
        <i key={slot} class={slot < used ? "used" : ""} />
      ))}
      <span>
        {used}/{worker.slotsNumber}
      </span>
    </span>
  );
}

export function TaskManagersPage() {
  const { data, error } = usePoll<{ taskmanagers: TaskManager[] }>("/taskmanagers");
  return (
    <>
      <div class="page-head">
        <h1>Task managers</h1>
      </div>
      <Card flush>
        {!data ? (
          <Waiting error={error} />
        ) : data.taskmanagers.length === 0 ? (
          <Empty icon="workers" title="No task manager has registered">
            <p>Spark starts executors when the first job needs slots.</p>
          </Empty>
        ) : (
          <Table
            label="Task managers"
            columns={COLUMNS}
            rows={data.taskmanagers}
            id={(worker) => worker.id}
            onRow={(worker) => go("task-managers", worker.id)}
            initial={{ title: "Task manager", descending: false }}
          />
        )}
      </Card>
    </>
  );
}

const PARTS = [
  ["metrics", "Slots and memory"],
  ["log", "Log"],
  ["stdout", "Standard output"],
  ["logs", "Log files"],
  ["thread-dump", "Thread dump"],
  ["profiler", "Profiler"],
] as const;

export function TaskManagerPage({ id, part, rest }: { id: string; part: string; rest: string[] }) {
  const path = `/taskmanagers/${encodeURIComponent(id)}`;
  const { data, error } = usePoll<TaskManagerDetails>(path);
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={link("task-managers")}>Task managers</a>
          </p>
          <h1>{id}</h1>
        </div>
      </div>
      <Tabs current={part} items={PARTS.map(([name, label]) => ({ id: name, label, href: link("task-managers", id, name) }))} />
      {part === "log" && (
        <Card>
          <LogView path={`${path}/log`} empty="The log is empty" />
        </Card>
      )}
      {part === "stdout" && (
        <Card>
          <LogView path={`${path}/stdout`} empty="Nothing was printed" />
        </Card>
      )}
      {part === "logs" && <LogFiles path={path} route={["task-managers", id, "logs"]} file={rest[0]} />}
      {part === "thread-dump" && <ThreadDumpView path={path} />}
      {part === "profiler" && <ProfilerView path={path} />}
      {part === "metrics" && (data ? <Worker worker={data} /> : <Waiting error={error} />)}
    </>
  );
}

function Worker({ worker }: { worker: TaskManagerDetails }) {
  const jobs = usePoll<{ jobs: JobSummary[] }>("/jobs/overview");
  const names = new Map(jobs.data?.jobs.map((job) => [job.jid, job.name]));
  const { metrics, hardware } = worker;
  const slots = worker.allocatedSlots ?? [];
  return (
    <>
      <div class="stats">
        <Stat label="Slots" value={<Slots worker={worker} />} note={`${count(worker.freeSlots)} free`} />
        <Stat label="CPU cores" value={count(hardware.cpuCores)} />
        <Stat label="Physical memory" value={bytes(hardware.physicalMemory)} />
        {metrics && metrics.heapMax > 0 && (
          <Stat
            label="Heap"
            value={bytes(metrics.heapUsed)}
            note={<Meter ratio={metrics.heapUsed / metrics.heapMax} label={`of ${bytes(metrics.heapMax)}`} />}
          />
        )}
        <Stat label="Last heartbeat" value={heartbeat(worker.timeSinceLastHeartbeat)} />
      </div>
      <Card flush title="Slots in use">
        {slots.length === 0 ? (
          <Empty title="All slots are free" />
        ) : (
          <Table
            label="Slots"
            rows={slots.map((slot, index) => ({ ...slot, index }))}
            id={(slot) => slot.index}
            columns={[
              { title: "Slot", cell: (slot) => slot.index },
              { title: "Job", main: true, cell: (slot) => <a href={link("job", slot.jobId)}>{names.get(slot.jobId) ?? slot.jobId}</a> },
              { title: "Tasks", numeric: true, cell: (slot) => count(slot.assignedTasks ?? NaN) },
              { title: "CPU cores", numeric: true, cell: (slot) => slot.resource.cpuCores },
            ]}
          />
        )}
      </Card>
      <Card title="Details">
        <Facts
          rows={[
            ["Path", <code>{worker.path}</code>],
            ["Data port", worker.dataPort > 0 ? String(worker.dataPort) : "none"],
            ["Free memory", bytes(hardware.freeMemory)],
            ...(metrics
              ? ([
                  ["Memory outside the heap", bytes(metrics.nonHeapUsed)],
                  ["Direct buffers", bytes(metrics.directUsed)],
                  ...metrics.garbageCollectors.map((gc): [string, string] => [
                    `Garbage collector ${gc.name}`,
                    `${count(gc.count)} runs, ${duration(gc.time)}`,
                  ]),
                ] as [string, string][])
              : []),
          ]}
        />
      </Card>
    </>
  );
}

function heartbeat(time: number): string {
  return isTime(time) ? `${duration(Math.max(0, Date.now() - time))} ago` : "–";
}
