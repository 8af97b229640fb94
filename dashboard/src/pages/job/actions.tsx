// Actions on a job: savepoint, stop, rescale, cancel.
import { useEffect, useRef, useState } from "preact/hooks";
import { runOperation, send } from "../../api/client";
import { usePoll } from "../../api/poll";
import type { DashboardConfig, JobDetails, ResourceRequirements } from "../../api/types";
import { ActionDialog, Dialog } from "../../components/dialog";
import { CommandLine, Copy, Waiting } from "../../components/basics";
import { Icon, type IconName } from "../../components/icon";
import { toast } from "../../components/toasts";
import { vertexName } from "../../lib/format";

type Action = "savepoint" | "checkpoint" | "stop" | "rescale" | "cancel";

interface ActionProps {
  job: JobDetails;
  onClose: () => void;
  onDone: () => void;
}

export function Actions({ job, config, ended, onDone }: { job: JobDetails; config: DashboardConfig; ended: boolean; onDone: () => void }) {
  const [action, setAction] = useState<Action>();
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const elsewhere = (event: Event) => {
      if (menu.current && !menu.current.contains(event.target as Node)) menu.current.open = false;
    };
    addEventListener("click", elsewhere);
    return () => removeEventListener("click", elsewhere);
  }, []);
  if (ended || config.features["web-history"]) return null;
  const choose = (next: Action) => {
    if (menu.current) menu.current.open = false;
    setAction(next);
  };
  const props = { job, onDone, onClose: () => setAction(undefined) };
  const entry = (id: Action, icon: IconName, label: string) => (
    <button type="button" role="menuitem" onClick={() => choose(id)}>
      <Icon name={icon} size={16} />
      {label}
    </button>
  );
  return (
    <div class="actions">
      <button type="button" class="button" onClick={() => setAction("savepoint")}>
        <Icon name="save" size={16} />
        Savepoint
      </button>
      {config.features["web-cancel"] && (
        <button type="button" class="button" onClick={() => setAction("stop")}>
          <Icon name="stop" size={16} />
          Stop
        </button>
      )}
      <details ref={menu} class="menu">
        <summary class="button" aria-label="More actions">
          More
          <Icon name="down" size={15} />
        </summary>
        <div role="menu">
          {entry("checkpoint", "save", "Take a checkpoint")}
          {config.features["web-rescale"] && entry("rescale", "scale", "Rescale")}
          {config.features["web-cancel"] && entry("cancel", "close", "Cancel the job")}
        </div>
      </details>
      {action === "savepoint" && <Savepoint {...props} />}
      {action === "checkpoint" && <TakeCheckpoint {...props} />}
      {action === "stop" && <Stop {...props} />}
      {action === "rescale" && <Rescale {...props} />}
      {action === "cancel" && <Cancel {...props} />}
    </div>
  );
}

function Cancel({ job, onClose, onDone }: ActionProps) {
  async function cancel(): Promise<void> {
    await send("PATCH", `/jobs/${job.jid}?mode=cancel`);
    toast("good", `Job ${job.name} is being canceled.`);
    onDone();
  }
  return (
    <ActionDialog title="Cancel the job?" label="Cancel the job" danger act={cancel} onClose={onClose}>
      <p>
        <b>{job.name}</b> ends at once, without a savepoint. Records since the last checkpoint will not be committed. To continue
        later, stop the job with a savepoint instead.
      </p>
    </ActionDialog>
  );
}

function DirectoryField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return (
    <label class="field">
      <span>Directory</span>
      <input type="text" value={value} onInput={(event) => onInput(event.currentTarget.value)} placeholder="execution.checkpointing.savepoint-dir" />
      <small>Empty means the configured directory.</small>
    </label>
  );
}

const savepointStatus = (job: JobDetails) => (trigger: string) => `/jobs/${job.jid}/savepoints/${trigger}`;

function told(what: string, location: string | undefined) {
  return (
    <>
      {what}
      {location && (
        <span class="place">
          <code>{location}</code>
          <Copy text={location} label="Copy the path" />
        </span>
      )}
    </>
  );
}

function Savepoint({ job, onClose, onDone }: ActionProps) {
  const [directory, setDirectory] = useState("");
  async function take(): Promise<void> {
    const body = { "target-directory": directory || null, "cancel-job": false, formatType: "CANONICAL" };
    const { operation } = await runOperation(`/jobs/${job.jid}/savepoints`, body, savepointStatus(job));
    toast("good", told("Savepoint completed.", operation?.location));
    onDone();
  }
  return (
    <ActionDialog title="Take a savepoint" label="Take a savepoint" act={take} onClose={onClose}>
      <p>The job continues while its state is written. You can start this or a changed program from the savepoint.</p>
      <DirectoryField value={directory} onInput={setDirectory} />
    </ActionDialog>
  );
}

function TakeCheckpoint({ job, onClose, onDone }: ActionProps) {
  async function take(): Promise<void> {
    const { operation } = await runOperation(`/jobs/${job.jid}/checkpoints`, { checkpointType: "CONFIGURED" }, (trigger) => `/jobs/${job.jid}/checkpoints/${trigger}`);
    toast("good", `Checkpoint ${operation?.checkpointId ?? ""} completed.`);
    onDone();
  }
  return (
    <ActionDialog title="Take a checkpoint" label="Take a checkpoint" act={take} onClose={onClose}>
      <p>The job takes a checkpoint now, in addition to those of the interval.</p>
    </ActionDialog>
  );
}

function Stop({ job, onClose, onDone }: ActionProps) {
  const [directory, setDirectory] = useState("");
  const [drain, setDrain] = useState(false);
  async function stop(): Promise<void> {
    const body = { targetDirectory: directory || null, drain, formatType: "CANONICAL" };
    const { operation } = await runOperation(`/jobs/${job.jid}/stop`, body, savepointStatus(job));
    toast("good", told(`Job ${job.name} has stopped with a savepoint.`, operation?.location));
    onDone();
  }
  return (
    <ActionDialog title="Stop with a savepoint" label="Stop the job" danger act={stop} onClose={onClose}>
      <p>
        <b>{job.name}</b> takes a savepoint, commits its results, and ends. You can continue from the savepoint.
      </p>
      <DirectoryField value={directory} onInput={setDirectory} />
      <label class="check">
        <input type="checkbox" checked={drain} onChange={(event) => setDrain(event.currentTarget.checked)} />
        Drain: emit the largest watermark first, so that all windows and timers fire. Do not continue the job afterwards.
      </label>
    </ActionDialog>
  );
}

/** Servers without this call change the parallelism with a savepoint. */
function Rescale(props: ActionProps) {
  const { jid } = props.job;
  const { data, error } = usePoll<ResourceRequirements>(`/jobs/${jid}/resource-requirements`, { once: true });
  if (data) return <RescaleForm {...props} current={data} />;
  return (
    <Dialog title="Rescale the job" onClose={props.onClose}>
      <div class="dialog-body">
        {error?.status === 404 ? (
          <>
            <p>Stop the job with a savepoint, and start it again from there with a different parallelism:</p>
            <CommandLine text={`firesteel stop -m ${location.host} ${jid}`} />
            <CommandLine text={`firesteel run -m ${location.host} -d -s <savepoint> -p 4 job.py`} />
          </>
        ) : (
          <Waiting error={error} />
        )}
      </div>
    </Dialog>
  );
}

function RescaleForm({ job, onClose, onDone, current }: ActionProps & { current: ResourceRequirements }) {
  const [wanted, setWanted] = useState<Record<string, number>>(() => Object.fromEntries(job.vertices.map((vertex) => [vertex.id, vertex.parallelism])));
  async function rescale(): Promise<void> {
    const next = Object.fromEntries(
      job.vertices.map((vertex): [string, ResourceRequirements[string]] => {
        const upperBound = wanted[vertex.id] ?? vertex.parallelism;
        const lowerBound = Math.min(current[vertex.id]?.parallelism.lowerBound ?? 1, upperBound);
        return [vertex.id, { parallelism: { lowerBound, upperBound } }];
      }),
    );
    await send("PUT", `/jobs/${job.jid}/resource-requirements`, next);
    toast("good", `Job ${job.name} is being rescaled. It restarts from a checkpoint.`);
    onDone();
  }
  const changeAll = (by: number) =>
    setWanted(Object.fromEntries(job.vertices.map((vertex) => [vertex.id, clamp((wanted[vertex.id] ?? 1) + by, vertex.maxParallelism)])));
  return (
    <ActionDialog title="Rescale the job" label="Rescale" act={rescale} onClose={onClose}>
      <p>The job restarts from a checkpoint with the new parallelism. State moves with its keys.</p>
      <div class="toolbar">
        <span class="muted">All vertices</span>
        <button type="button" class="icon-button" aria-label="Less parallelism everywhere" onClick={() => changeAll(-1)}>
          <Icon name="minus" size={16} />
        </button>
        <button type="button" class="icon-button" aria-label="More parallelism everywhere" onClick={() => changeAll(1)}>
          <Icon name="plus" size={16} />
        </button>
      </div>
      <div class="rescale">
        {job.vertices.map((vertex) => (
          <label key={vertex.id}>
            <span>{vertexName(vertex.name)}</span>
            <input
              type="number"
              min={1}
              max={limit(vertex.maxParallelism)}
              value={wanted[vertex.id]}
              onInput={(event) => setWanted({ ...wanted, [vertex.id]: clamp(event.currentTarget.valueAsNumber, vertex.maxParallelism) })}
            />
          </label>
        ))}
      </div>
    </ActionDialog>
  );
}

function limit(maxParallelism: number): number {
  return maxParallelism > 0 ? maxParallelism : 32_768;
}

function clamp(value: number, maxParallelism: number): number {
  return Math.min(limit(maxParallelism), Math.max(1, Math.round(value) || 1));
}
