// Log files, thread dumps and profiles, which task managers and the job manager have alike.
import { useState } from "preact/hooks";
import { send } from "../api/client";
import { usePoll } from "../api/poll";
import type { LogList, Profile, ProfileList, ThreadDump } from "../api/types";
import { Card, Empty, Moment, Status, Waiting } from "../components/basics";
import { ActionDialog } from "../components/dialog";
import { Table } from "../components/table";
import { LogView } from "../components/text-view";
import { bytes } from "../lib/format";
import { go, link } from "../lib/router";

/** The list of log files below `path`, or one file of it. */
export function LogFiles({ path, route, file }: { path: string; route: string[]; file: string | undefined }) {
  const { data, error } = usePoll<LogList>(file ? null : `${path}/logs`);
  if (file) {
    return (
      <Card title={file} aside={<a href={link(...route)}>All files</a>}>
        <LogView key={file} path={`${path}/logs/${encodeURIComponent(file)}`} empty="The file is empty" />
      </Card>
    );
  }
  return (
    <Card flush title="Log files">
      {!data ? (
        <Waiting error={error} />
      ) : data.logs.length === 0 ? (
        <Empty title="There are no log files" />
      ) : (
        <Table
          label="Log files"
          rows={data.logs}
          id={(log) => log.name}
          onRow={(log) => go(...route, log.name)}
          initial={{ title: "Changed", descending: true }}
          columns={[
            { title: "Name", main: true, sort: (log) => log.name, cell: (log) => <a href={link(...route, log.name)}>{log.name}</a> },
            { title: "Size", numeric: true, sort: (log) => log.size, cell: (log) => bytes(log.size) },
            { title: "Changed", numeric: true, sort: (log) => log.mtime, cell: (log) => <Moment at={log.mtime} /> },
          ]}
        />
      )}
    </Card>
  );
}

export function ThreadDumpView({ path }: { path: string }) {
  const { data, error, refresh } = usePoll<ThreadDump>(`${path}/thread-dump`, { once: true });
  return (
    <Card
      title={data ? `${data.threadInfos.length} threads` : "Threads"}
      aside={
        <button type="button" class="button small" onClick={refresh}>
          Take again
        </button>
      }
    >
      {!data ? (
        <Waiting error={error} lines={6} />
      ) : data.threadInfos.length === 0 ? (
        <Empty title="No threads were reported" />
      ) : (
        <div class="threads">
          {data.threadInfos.map((thread, index) => (
            <details key={index} open={index === 0}>
              <summary>{thread.threadName}</summary>
              <pre class="code">{thread.stringifiedThreadInfo.trim()}</pre>
            </details>
          ))}
        </div>
      )}
    </Card>
  );
}

const MODES: [string, string][] = [
  ["CPU", "Functions that use the processor"],
  ["WALL", "All functions, also those that wait"],
];

/** Profiles of a process: which functions use its time. */
export function ProfilerView({ path }: { path: string }) {
  const { data, error, refresh } = usePoll<ProfileList>(`${path}/profiler`);
  const [asking, setAsking] = useState(false);
  const [mode, setMode] = useState("CPU");
  const [seconds, setSeconds] = useState("30");
  async function start(): Promise<void> {
    await send<Profile>("POST", `${path}/profiler`, { mode, duration: Number(seconds) });
    refresh();
  }
  return (
    <Card
      flush
      title="Profiles"
      aside={
        <button type="button" class="button small" onClick={() => setAsking(true)}>
          New profile
        </button>
      }
    >
      {!data ? (
        <Waiting error={error} />
      ) : data.profilingList.length === 0 ? (
        <Empty title="No profile yet">
          <p>A profile samples the stacks of this process and shows the functions that use its time.</p>
        </Empty>
      ) : (
        <Table
          label="Profiles"
          rows={data.profilingList}
          id={(profile) => profile.triggerTime}
          columns={[
            { title: "Begun", main: true, cell: (profile) => <Moment at={profile.triggerTime} /> },
            { title: "Mode", cell: (profile) => profile.mode },
            { title: "Seconds", numeric: true, cell: (profile) => profile.duration },
            { title: "State", cell: (profile) => <Status state={profile.status} /> },
            { title: "Result", cell: (profile) => <Result path={path} profile={profile} /> },
          ]}
        />
      )}
      {asking && (
        <ActionDialog title="New profile" label="Start" act={start} onClose={() => setAsking(false)}>
          <label class="field">
            <span>Samples</span>
            <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
              {MODES.map(([id, label]) => (
                <option key={id} value={id}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>Seconds</span>
            <input type="number" min="1" max="300" value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} />
          </label>
        </ActionDialog>
      )}
    </Card>
  );
}

function Result({ path, profile }: { path: string; profile: Profile }) {
  if (!profile.outputFile) return <>{profile.message}</>;
  return (
    <a href={`.${path}/profiler/${encodeURIComponent(profile.outputFile)}`} target="_blank" rel="noreferrer">
      Open
    </a>
  );
}
