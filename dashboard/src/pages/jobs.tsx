// The list of jobs, with a filter by state and name.
import { useState } from "preact/hooks";
import { usePoll } from "../api/poll";
import type { JobSummary, TaskCounts } from "../api/types";
import { Card, Empty, Moment, Status, Tabs, Waiting } from "../components/basics";
import { Icon } from "../components/icon";
import { Table, type Column } from "../components/table";
import { count, duration } from "../lib/format";
import { go, link } from "../lib/router";

const ENDED = new Set(["FINISHED", "CANCELED", "FAILED", "SUSPENDED"]);

export function hasEnded(state: string): boolean {
  return ENDED.has(state);
}

const FILTERS: { id: string; label: string; fits: (job: JobSummary) => boolean }[] = [
  { id: "all", label: "All", fits: () => true },
  { id: "running", label: "Running", fits: (job) => !hasEnded(job.state) },
  { id: "finished", label: "Finished", fits: (job) => job.state === "FINISHED" },
  { id: "canceled", label: "Canceled", fits: (job) => job.state === "CANCELED" },
  { id: "failed", label: "Failed", fits: (job) => job.state === "FAILED" },
];

export function JobsPage({ state }: { state: string }) {
  const { data, error } = usePoll<{ jobs: JobSummary[] }>("/jobs/overview");
  const [search, setSearch] = useState("");
  const filter = FILTERS.find((one) => one.id === state) ?? FILTERS[0]!;
  const jobs = data?.jobs ?? [];
  const wanted = search.trim().toLowerCase();
  const shown = jobs
    .filter(filter.fits)
    .filter((job) => job.name.toLowerCase().includes(wanted) || job.jid.startsWith(wanted));
  return (
    <>
      <div class="page-head">
        <h1>Jobs</h1>
        <label class="search">
          <Icon name="search" size={16} />
          <input
            type="search"
            placeholder="Name or id"
            aria-label="Search jobs"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      </div>
      <Tabs
        current={filter.id}
        items={FILTERS.map((one) => ({
          id: one.id,
          label: one.label,
          href: link("jobs", one.id),
          note: data && String(jobs.filter(one.fits).length),
        }))}
      />
      <Card flush>
        {!data ? <Waiting error={error} /> : <JobTable jobs={shown} empty={<NoJobs any={jobs.length > 0} />} />}
      </Card>
    </>
  );
}

function NoJobs({ any }: { any: boolean }) {
  if (any) return <Empty icon="search" title="No job fits this filter" />;
  return (
    <Empty icon="flame" title="No jobs yet">
      <p>Jobs that you submit to this session appear here.</p>
      <a class="button primary" href={link("submit")}>
        Submit a job
      </a>
    </Empty>
  );
}

const COLUMNS: Column<JobSummary>[] = [
  {
    title: "Name",
    main: true,
    sort: (job) => job.name,
    cell: (job) => (
      <a class="job-name" href={link("job", job.jid)}>
        {job.name}
        <small class="mono">{job.jid}</small>
      </a>
    ),
  },
  { title: "Status", sort: (job) => job.state, cell: (job) => <Status state={job.state} /> },
  { title: "Started", numeric: true, sort: (job) => job["start-time"], cell: (job) => <Moment at={job["start-time"]} /> },
  { title: "Duration", numeric: true, sort: (job) => job.duration, cell: (job) => duration(job.duration) },
  { title: "Ended", numeric: true, sort: (job) => job["end-time"], cell: (job) => <Moment at={job["end-time"]} /> },
  { title: "Tasks", numeric: true, sort: (job) => job.tasks["total"] ?? 0, cell: (job) => <Tasks tasks={job.tasks} /> },
];

export function JobTable({ jobs, empty }: { jobs: JobSummary[]; empty: preact.ComponentChildren }) {
  if (jobs.length === 0) return <>{empty}</>;
  return (
    <Table
      label="Jobs"
      columns={COLUMNS}
      rows={jobs}
      id={(job) => job.jid}
      onRow={(job) => go("job", job.jid)}
      initial={{ title: "Started", descending: true }}
    />
  );
}

const GOOD = ["running", "finished"];

/** The number of tasks. The bar shows the shares of running or finished ones, and of failed ones. */
export function Tasks({ tasks }: { tasks: TaskCounts }) {
  const counts = Object.fromEntries(Object.entries(tasks).map(([state, number]) => [state.toLowerCase(), number]));
  const sum = (states: string[]) => states.reduce((total, state) => total + (counts[state] ?? 0), 0);
  const total = counts["total"] ?? Object.values(counts).reduce((a, b) => a + b, 0);
  const title = Object.entries(counts)
    .filter(([state, number]) => number > 0 && state !== "total")
    .map(([state, number]) => `${number} ${state}`)
    .join(", ");
  const share = (part: number) => ({ width: total ? `${(100 * part) / total}%` : "0" });
  return (
    <span class="tasks" title={title}>
      <span class="tasks-bar" aria-hidden="true">
        <span class="tasks-good" style={share(sum(GOOD))} />
        <span class="tasks-bad" style={share(sum(["failed"]))} />
      </span>
      {count(total)}
    </span>
  );
}
