// Failures of a job, newest first: the user's traceback, and the record that caused it.
import { usePoll } from "../../api/poll";
import type { ExceptionEntry, JobExceptions } from "../../api/types";
import { Card, Copy, Empty, Moment, Waiting } from "../../components/basics";
import { parseFailure } from "../../lib/exceptions";
import { link } from "../../lib/router";

const MOST = 20;

export function ExceptionsPage({ jid }: { jid: string }) {
  const { data, error } = usePoll<JobExceptions>(`/jobs/${jid}/exceptions?maxExceptions=${MOST}`);
  if (!data) return <Waiting error={error} />;
  const { entries, truncated } = data.exceptionHistory;
  if (entries.length === 0) {
    return (
      <Card>
        <Empty icon="check" title="No failures">
          This job has not failed since it started.
        </Empty>
      </Card>
    );
  }
  return (
    <>
      {entries.map((entry, index) => (
        <Failure key={`${entry.timestamp}-${index}`} entry={entry} newest={index === 0} />
      ))}
      {truncated && <p class="muted small">Older failures are not shown.</p>}
    </>
  );
}

function Failure({ entry, newest }: { entry: ExceptionEntry; newest: boolean }) {
  const failure = parseFailure(entry.exceptionName, entry.stacktrace);
  const labels = Object.entries(entry.failureLabels ?? {});
  return (
    <section class="card failure">
      <header>
        <h2>{failure.title}</h2>
        <p class="head-facts">
          {newest && <span class="chip tone-bad">newest</span>}
          <Moment at={entry.timestamp} />
          {entry.taskName && <span>in {entry.taskName}</span>}
          {entry.endpoint && <span>on {entry.taskManagerId ? <a href={link("task-managers", entry.taskManagerId)}>{entry.endpoint}</a> : entry.endpoint}</span>}
          {labels.map(([name, value]) => (
            <span key={name} class="chip">
              {name}: {value}
            </span>
          ))}
        </p>
      </header>
      {failure.record !== null && (
        <div class="record">
          <span>Record</span>
          <code class="wrap">{failure.record}</code>
          <Copy text={failure.record} label="Copy the record" />
        </div>
      )}
      <details open={newest}>
        <summary>Traceback</summary>
        <div class="traceback">
          <Copy text={entry.stacktrace} label="Copy the traceback" />
          <pre class="code" tabIndex={0}>
            {failure.lines.map((line, index) => (
              <span key={index} class={line.own ? "own" : undefined}>
                {line.text}
                {"\n"}
              </span>
            ))}
          </pre>
        </div>
        {failure.explanation && <p class="explanation">{failure.explanation}</p>}
      </details>
      {entry.concurrentExceptions.length > 0 && (
        <details>
          <summary>{entry.concurrentExceptions.length} more at the same time</summary>
          {entry.concurrentExceptions.map((one, index) => (
            <Failure key={index} entry={one} newest={false} />
          ))}
        </details>
      )}
    </section>
  );
}
