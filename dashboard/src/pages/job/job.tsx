// One job: its head with the actions, and its pages.
import { usePoll } from "../../api/poll";
import type { DashboardConfig, JobDetails } from "../../api/types";
import { Card, Copy, Empty, Status, Tabs, Waiting } from "../../components/basics";
import { LogView } from "../../components/text-view";
import { duration, fullMoment, moment } from "../../lib/format";
import { link } from "../../lib/router";
import { hasEnded } from "../jobs";
import { Actions } from "./actions";
import { CheckpointsPage } from "./checkpoints";
import { ConfigurationPage } from "./configuration";
import { ExceptionsPage } from "./exceptions";
import { useLoads } from "./loads";
import { JobOverview } from "./overview";
import { SkewPage } from "./skew";
import { TimelinePage } from "./timeline";

const PARTS = [
  ["overview", "Overview"],
  ["exceptions", "Exceptions"],
  ["timeline", "Timeline"],
  ["checkpoints", "Checkpoints"],
  ["skew", "Data skew"],
  ["configuration", "Configuration"],
  ["stdout", "Output"],
  ["log", "Log"],
] as const;

export function JobPage({ jid, part, rest, config }: { jid: string; part: string; rest: string[]; config: DashboardConfig }) {
  const { data: job, error, refresh } = usePoll<JobDetails>(`/jobs/${jid}`);
  const ended = job !== undefined && hasEnded(job.state);
  const loads = useLoads(job, ended);

  if (!job) {
    if (error?.status === 404) {
      return (
        <Empty icon="search" title="This job is not known">
          <p>
            The server has no job <code>{jid}</code>. It may have left the history.
          </p>
          <a class="button" href={link("jobs")}>
            All jobs
          </a>
        </Empty>
      );
    }
    return <Waiting error={error} lines={6} />;
  }
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={link("jobs")}>Jobs</a>
          </p>
          <h1>{job.name}</h1>
          <p class="head-facts">
            <Status state={job.state} />
            <span title={fullMoment(job["start-time"])}>started {moment(job["start-time"])}</span>
            <span>{duration(job.duration)}</span>
            <span class="mono id">
              {job.jid}
              <Copy text={job.jid} label="Copy the id" />
            </span>
          </p>
        </div>
        <Actions job={job} config={config} ended={ended} onDone={refresh} />
      </div>
      <Tabs current={part} items={PARTS.map(([id, label]) => ({ id, label, href: link("job", jid, id) }))} />
      {part === "overview" && <JobOverview job={job} loads={loads} vertex={rest[0]} tab={rest[1] ?? "detail"} ended={ended} />}
      {part === "exceptions" && <ExceptionsPage jid={jid} />}
      {part === "timeline" && <TimelinePage job={job} />}
      {part === "checkpoints" && <CheckpointsPage job={job} open={rest[0]} />}
      {part === "skew" && <SkewPage job={job} />}
      {part === "configuration" && <ConfigurationPage jid={jid} />}
      {part === "stdout" && (
        <Card title="Standard output of the job master, with the lines of print()">
          <LogView path={`/jobs/${jid}/stdout`} empty="Nothing was printed" />
        </Card>
      )}
      {part === "log" && (
        <Card title="Log of the job master">
          <LogView path={`/jobs/${jid}/log`} empty="The log is empty" />
        </Card>
      )}
    </>
  );
}
