// Log files and thread dumps, which task managers and the job manager have alike.
import { usePoll } from "../api/poll";
import type { LogList, ThreadDump } from "../api/types";
import { Card, Empty, Moment, Waiting } from "../components/basics";
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
