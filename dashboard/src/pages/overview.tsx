// The overview: slots, task managers, jobs by state, running jobs, and jobs that have ended.
import { usePoll } from "../api/poll";
import type { ClusterOverview, JobSummary } from "../api/types";
import { Card, Empty, Meter, Stat, Waiting } from "../components/basics";
import { count } from "../lib/format";
import { link } from "../lib/router";
import { hasEnded, JobTable } from "./jobs";

const ENDED_SHOWN = 10;

export function OverviewPage({ history }: { history: boolean }) {
  const cluster = usePoll<ClusterOverview>(history ? null : "/overview");
  const jobs = usePoll<{ jobs: JobSummary[] }>("/jobs/overview");
  const running = jobs.data?.jobs.filter((job) => !hasEnded(job.state)) ?? [];
  const ended = (jobs.data?.jobs.filter((job) => hasEnded(job.state)) ?? []).sort((a, b) => b["end-time"] - a["end-time"]);
  return (
    <>
      <div class="page-head">
        <h1>Overview</h1>
      </div>
      {!history && (cluster.data ? <ClusterStats cluster={cluster.data} /> : <Waiting error={cluster.error} lines={2} />)}
      {!history && (
        <Card flush title="Running jobs" aside={<a href={link("jobs", "running")}>All {count(running.length)}</a>}>
          {!jobs.data ? (
            <Waiting error={jobs.error} />
          ) : (
            <JobTable
              jobs={running}
              empty={
                <Empty icon="flame" title="No job is running">
                  <p>
                    Start one with <code>firesteel run</code>, or see <a href={link("submit")}>how to submit a job</a>.
                  </p>
                </Empty>
              }
            />
          )}
        </Card>
      )}
      <Card flush title="Ended jobs" aside={<a href={link("jobs", "all")}>All {count(ended.length)}</a>}>
        {!jobs.data ? (
          <Waiting error={jobs.error} />
        ) : (
          <JobTable jobs={ended.slice(0, ENDED_SHOWN)} empty={<Empty title="No job has ended yet" />} />
        )}
      </Card>
    </>
  );
}

function ClusterStats({ cluster }: { cluster: ClusterOverview }) {
  const total = cluster["slots-total"];
  const used = total - cluster["slots-available"];
  return (
    <div class="stats">
      <Stat
        label="Slots in use"
        value={
          <>
            {count(used)}
            <small> of {count(total)}</small>
          </>
        }
        note={<Meter ratio={total ? used / total : 0} label={`${used} of ${total} slots in use`} />}
      />
      <Stat
        label="Task managers"
        value={count(cluster.taskmanagers)}
        note={total ? `${count(cluster["slots-available"])} free slots` : "none has registered"}
        href={link("task-managers")}
      />
      <Stat label="Running jobs" value={count(cluster["jobs-running"])} tone={cluster["jobs-running"] ? "good" : "mute"} note="right now" href={link("jobs", "running")} />
      <Stat label="Finished" value={count(cluster["jobs-finished"])} note="or stopped" href={link("jobs", "finished")} />
      <Stat label="Canceled" value={count(cluster["jobs-cancelled"])} note="by users" href={link("jobs", "canceled")} />
      <Stat label="Failed" value={count(cluster["jobs-failed"])} tone={cluster["jobs-failed"] ? "bad" : "mute"} note="after all restarts" href={link("jobs", "failed")} />
    </div>
  );
}
