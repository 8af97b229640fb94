// Checkpoints of a job: counts, the latest ones, history with the figures of each subtask, settings.
import { useState } from "preact/hooks";
import { ApiError } from "../../api/client";
import { usePoll } from "../../api/poll";
import type { Checkpoint, CheckpointConfig, CheckpointDetails, Checkpoints, CheckpointSubtasks, JobDetails, Spread } from "../../api/types";
import { Banner, Card, Copy, Empty, Facts, Moment, Stat, Status, Waiting } from "../../components/basics";
import { Icon } from "../../components/icon";
import { Table, type Column } from "../../components/table";
import { bytes, count, duration, vertexName, toNumber } from "../../lib/format";
import { go, link } from "../../lib/router";

export function CheckpointsPage({ job, open }: { job: JobDetails; open: string | undefined }) {
  const path = `/jobs/${job.jid}/checkpoints`;
  const { data, error } = usePoll<Checkpoints>(path);
  const config = usePoll<CheckpointConfig>(`${path}/config`, { once: true });
  if (!data) {
    if (error?.status === 404) return <Disabled />;
    return <Waiting error={error} />;
  }
  if (data.counts.total === 0 && config.data && config.data.interval >= 2 ** 53) return <Disabled />;
  return (
    <>
      <Latest checkpoints={data} />
      <SlowHint checkpoints={data} jid={job.jid} />
      {data.history.length > 0 && <Durations history={data.history} jid={job.jid} open={open} />}
      <Card flush title="History" aside={data.history.length > 0 && `the last ${data.history.length}`}>
        {data.history.length === 0 ? (
          <Empty icon="save" title="No checkpoint yet">
            The first one starts after the interval.
          </Empty>
        ) : (
          <Table
            label="Checkpoints"
            rows={data.history}
            id={(one) => one.id}
            columns={columns(job.jid, open)}
            onRow={(one) => (open === String(one.id) ? go("job", job.jid, "checkpoints") : go("job", job.jid, "checkpoints", one.id))}
            selected={Number(open)}
            below={(one) => open === String(one.id) && <Details job={job} checkpoint={one} />}
          />
        )}
      </Card>
      {data.counts.completed > 0 && <Summary summary={data.summary} />}
      <Card title="Settings">{config.data ? <Settings config={config.data} /> : <Waiting error={config.error as ApiError | undefined} />}</Card>
    </>
  );
}

function Disabled() {
  return (
    <Card>
      <Empty icon="save" title="Checkpoints are off">
        <p>
          Set <code>execution.checkpointing.interval</code>, for example to <code>10 s</code>. After a failure a job without
          checkpoints begins from the start.
        </p>
      </Empty>
    </Card>
  );
}

function Latest({ checkpoints: { counts, latest } }: { checkpoints: Checkpoints }) {
  const { completed, savepoint, failed, restored } = latest;
  return (
    <div class="stats">
      <Stat label="Completed" value={count(counts.completed)} tone={counts.completed ? "good" : "mute"} note={`${count(counts.in_progress)} in progress`} />
      <Stat label="Failed" value={count(counts.failed)} tone={counts.failed ? "bad" : "mute"} note={failed ? <Moment at={failed.failure_timestamp} /> : "none"} />
      <Stat
        label="Latest"
        value={completed ? duration(completed.end_to_end_duration) : "–"}
        note={completed ? <>number {completed.id}, {bytes(completed.state_size)} at <Moment at={completed.latest_ack_timestamp} /></> : "none completed yet"}
      />
      <Stat
        label="Latest savepoint"
        value={savepoint ? <Moment at={savepoint.latest_ack_timestamp} /> : "–"}
        note={savepoint?.external_path ? <Place path={savepoint.external_path} /> : "none"}
      />
      <Stat
        label="Restored"
        value={count(counts.restored)}
        note={restored ? <>number {restored.id} at <Moment at={restored.restore_timestamp} /></> : "never"}
      />
    </div>
  );
}

function Place({ path }: { path: string }) {
  return (
    <span class="place">
      <code title={path}>{path}</code>
      <Copy text={path} label="Copy the path" />
    </span>
  );
}

/** The newest explanation of a slow checkpoint. */
function SlowHint({ checkpoints, jid }: { checkpoints: Checkpoints; jid: string }) {
  const failed = checkpoints.latest.failed;
  const slow = checkpoints.history.find((one) => one.explanation);
  const newestFailed = failed?.failure_message && checkpoints.history[0]?.id === failed.id;
  return (
    <>
      {newestFailed && (
        <Banner tone="bad" icon="alert">
          <b>Checkpoint {failed.id} failed.</b> {failed.failure_message}
        </Banner>
      )}
      {slow && (
        <Banner tone="warn">
          <b>
            <a href={link("job", jid, "checkpoints", slow.id)}>Checkpoint {slow.id}</a> was slow.
          </b>{" "}
          {slow.explanation}
        </Banner>
      )}
    </>
  );
}

/** A bar per checkpoint of the history, oldest first. */
function Durations({ history, jid, open }: { history: Checkpoint[]; jid: string; open: string | undefined }) {
  const longest = Math.max(...history.map((one) => one.end_to_end_duration), 1);
  return (
    <Card title="Durations" aside={`longest ${duration(longest)}`}>
      <div class="bars">
        {[...history].reverse().map((one) => (
          <a
            key={one.id}
            href={link("job", jid, "checkpoints", one.id)}
            class={`bar ${one.status.toLowerCase()} ${one.explanation ? "slow" : ""} ${one.is_savepoint ? "savepoint" : ""} ${open === String(one.id) ? "selected" : ""}`}
            title={`Checkpoint ${one.id}: ${duration(one.end_to_end_duration)}, ${bytes(one.state_size)}`}
            aria-label={`Checkpoint ${one.id}, ${duration(one.end_to_end_duration)}`}
          >
            <i style={{ height: `${Math.max(3, (100 * one.end_to_end_duration) / longest)}%` }} />
            <span>{one.id}</span>
          </a>
        ))}
      </div>
    </Card>
  );
}

function kind(checkpoint: Checkpoint): string {
  switch (checkpoint.checkpoint_type) {
    case "SAVEPOINT":
      return "savepoint";
    case "SYNC_SAVEPOINT":
      return "stop with savepoint";
    case "UNALIGNED_CHECKPOINT":
      return "unaligned";
    default:
      return checkpoint.is_savepoint ? "savepoint" : "checkpoint";
  }
}

function columns(jid: string, open: string | undefined): Column<Checkpoint>[] {
  return [
    {
      title: "Number",
      main: true,
      sort: (one) => one.id,
      cell: (one) => (
        <a class={`expander ${open === String(one.id) ? "open" : ""}`} href={open === String(one.id) ? link("job", jid, "checkpoints") : link("job", jid, "checkpoints", one.id)}>
          <Icon name="right" size={15} />
          {one.id}
        </a>
      ),
    },
    { title: "Status", sort: (one) => one.status, cell: (one) => <Status state={one.status} /> },
    { title: "Kind", sort: kind, cell: kind },
    { title: "Triggered", numeric: true, sort: (one) => one.trigger_timestamp, cell: (one) => <Moment at={one.trigger_timestamp} /> },
    { title: "Duration", numeric: true, sort: (one) => one.end_to_end_duration, cell: (one) => duration(one.end_to_end_duration) },
    { title: "Acknowledged", numeric: true, cell: (one) => `${one.num_acknowledged_subtasks}/${one.num_subtasks}` },
    { title: "Written", numeric: true, sort: (one) => one.checkpointed_size, cell: (one) => bytes(one.checkpointed_size) },
    { title: "State", numeric: true, sort: (one) => one.state_size, cell: (one) => bytes(one.state_size) },
  ];
}

function Details({ job, checkpoint }: { job: JobDetails; checkpoint: Checkpoint }) {
  const running = checkpoint.status === "IN_PROGRESS";
  const { data, error } = usePoll<CheckpointDetails>(`/jobs/${job.jid}/checkpoints/details/${checkpoint.id}`, { once: !running });
  const [vertex, setVertex] = useState<string>();
  if (!data) return <Waiting error={error} />;
  const names = new Map(job.vertices.map((one) => [one.id, vertexName(one.name)]));
  const tasks = Object.entries(data.tasks ?? {}).map(([vertexId, task]) => ({ ...task, vertexId }));
  const explanation = data.explanation ?? checkpoint.explanation;
  return (
    <div class="details">
      {explanation && <Banner tone="warn">{explanation}</Banner>}
      {data.failure_message && (
        <Banner tone="bad" icon="alert">
          {data.failure_message}
        </Banner>
      )}
      {data.external_path && (
        <p class="path">
          {data.discarded ? "Deleted" : "Stored in"} <Place path={data.external_path} />
        </p>
      )}
      {tasks.length === 0 ? (
        <Empty title="No subtask has acknowledged yet" />
      ) : (
        <Table
          label={`Vertices of checkpoint ${checkpoint.id}`}
          rows={tasks}
          id={(task) => task.vertexId}
          onRow={(task) => setVertex(vertex === task.vertexId ? undefined : task.vertexId)}
          selected={vertex}
          columns={[
            {
              title: "Vertex",
              main: true,
              cell: (task) => (
                <button type="button" class={`expander ${vertex === task.vertexId ? "open" : ""}`} onClick={() => setVertex(vertex === task.vertexId ? undefined : task.vertexId)}>
                  <Icon name="right" size={15} />
                  {names.get(task.vertexId) ?? task.vertexId}
                </button>
              ),
            },
            { title: "Acknowledged", numeric: true, cell: (task) => `${task.num_acknowledged_subtasks}/${task.num_subtasks}` },
            { title: "Duration", numeric: true, cell: (task) => duration(task.end_to_end_duration) },
            { title: "Written", numeric: true, cell: (task) => bytes(task.checkpointed_size) },
            { title: "State", numeric: true, cell: (task) => bytes(task.state_size) },
          ]}
          below={(task) => vertex === task.vertexId && <SubtaskFigures path={`/jobs/${job.jid}/checkpoints/details/${checkpoint.id}/subtasks/${task.vertexId}`} />}
        />
      )}
    </div>
  );
}

const PHASES = [
  ["delay", "wait for the barrier"],
  ["align", "alignment"],
  ["sync", "snapshot, synchronous"],
  ["async", "snapshot, asynchronous"],
] as const;

function SubtaskFigures({ path }: { path: string }) {
  const { data, error } = usePoll<CheckpointSubtasks>(path, { once: true });
  if (!data) return <Waiting error={error} />;
  type Row = CheckpointSubtasks["subtasks"][number];
  const parts = (one: Row) => [one.start_delay ?? 0, one.alignment?.duration ?? 0, one.checkpoint?.sync ?? 0, one.checkpoint?.async ?? 0];
  const longest = Math.max(...data.subtasks.map((one) => parts(one).reduce((a, b) => a + b, 0)), 1);
  return (
    <div class="details">
      <p class="legend phases">
        {PHASES.map(([id, label]) => (
          <span key={id}>
            <i class={`phase-${id}`} />
            {label}
          </span>
        ))}
      </p>
      <Table
        label="Subtasks of the checkpoint"
        rows={data.subtasks}
        id={(one) => one.index}
        columns={[
          { title: "Subtask", main: true, sort: (one) => one.index, cell: (one) => one.index },
          { title: "Status", cell: (one) => <Status state={one.status === "completed" ? "COMPLETED" : "IN_PROGRESS"} /> },
          {
            title: "Where the time went",
            cell: (one) => (
              <span class="phases-bar">
                {parts(one).map((millis, index) => (
                  <i key={index} class={`phase-${PHASES[index]?.[0]}`} style={{ width: `${(100 * millis) / longest}%` }} title={`${PHASES[index]?.[1]}: ${duration(millis)}`} />
                ))}
              </span>
            ),
          },
          { title: "Duration", numeric: true, sort: (one) => one.end_to_end_duration ?? NaN, cell: (one) => duration(one.end_to_end_duration ?? NaN) },
          { title: "Written", numeric: true, sort: (one) => one.checkpointed_size ?? NaN, cell: (one) => bytes(one.checkpointed_size ?? NaN) },
          { title: "State", numeric: true, sort: (one) => one.state_size ?? NaN, cell: (one) => bytes(one.state_size ?? NaN) },
          { title: "Sync", numeric: true, cell: (one) => duration(one.checkpoint?.sync ?? NaN) },
          { title: "Async", numeric: true, cell: (one) => duration(one.checkpoint?.async ?? NaN) },
          { title: "Alignment", numeric: true, cell: (one) => duration(one.alignment?.duration ?? NaN) },
          { title: "Start delay", numeric: true, cell: (one) => duration(one.start_delay ?? NaN) },
        ]}
      />
    </div>
  );
}

const SUMMARY: [string, string, (value: number) => string][] = [
  ["end_to_end_duration", "Duration", duration],
  ["checkpointed_size", "Written", bytes],
  ["state_size", "State", bytes],
  ["processed_data", "Processed while it ran", bytes],
  ["persisted_data", "Persisted in-flight data", bytes],
];

function Summary({ summary }: { summary: Record<string, Spread> }) {
  const rows = SUMMARY.filter(([name]) => summary[name]);
  const figure = (label: string, name: string): Column<(typeof SUMMARY)[number]> => ({
    title: label,
    numeric: true,
    cell: ([key, , format]) => format(toNumber(summary[key]?.[name])),
  });
  return (
    <Card flush title="Summary of completed checkpoints">
      <Table
        label="Summary"
        rows={rows}
        id={([name]) => name}
        columns={[
          { title: "Figure", main: true, cell: ([, label]) => label },
          figure("Minimum", "min"),
          figure("Average", "avg"),
          figure("p50", "p50"),
          figure("p90", "p90"),
          figure("p99", "p99"),
          figure("Maximum", "max"),
        ]}
      />
    </Card>
  );
}

function Settings({ config }: { config: CheckpointConfig }) {
  const retained = !config.externalization.enabled
    ? "deleted when the job ends"
    : config.externalization.delete_on_cancellation
      ? "retained, deleted on cancellation"
      : "retained, also on cancellation";
  return (
    <Facts
      rows={[
        ["Mode", config.mode.replaceAll("_", " ")],
        ["Interval", config.interval < 2 ** 53 ? duration(config.interval) : "none"],
        ["Timeout", duration(config.timeout)],
        ["Pause between two", duration(config.min_pause)],
        ["At the same time", count(config.max_concurrent)],
        ["Tolerated failures", count(config.tolerable_failed_checkpoints)],
        ["Unaligned", config.unaligned_checkpoints ? "yes" : "no"],
        ["Checkpoints", retained],
        ["State backend", config.state_backend],
        ["Storage", config.checkpoint_storage],
      ]}
    />
  );
}
