// The job manager: configuration, memory, logs, threads of the driver.
import { useState } from "preact/hooks";
import { usePoll } from "../api/poll";
import type { MetricValue } from "../api/types";
import { Card, Empty, Tabs, Waiting } from "../components/basics";
import { Icon } from "../components/icon";
import { Table } from "../components/table";
import { LogView } from "../components/text-view";
import { bytes, count } from "../lib/format";
import { link } from "../lib/router";
import { LogFiles, ProfilerView, ThreadDumpView } from "./files";

const PARTS = [
  ["configuration", "Configuration"],
  ["metrics", "Metrics"],
  ["environment", "Environment"],
  ["log", "Log"],
  ["stdout", "Standard output"],
  ["logs", "Log files"],
  ["thread-dump", "Thread dump"],
  ["profiler", "Profiler"],
] as const;

export function JobManagerPage({ part, file }: { part: string; file: string | undefined }) {
  return (
    <>
      <div class="page-head">
        <h1>Job manager</h1>
      </div>
      <Tabs current={part} items={PARTS.map(([id, label]) => ({ id, label, href: link("job-manager", id) }))} />
      {part === "configuration" && <Configuration />}
      {part === "metrics" && <Metrics />}
      {part === "environment" && <Environment />}
      {part === "log" && (
        <Card>
          <LogView path="/jobmanager/log" empty="The log is empty" />
        </Card>
      )}
      {part === "stdout" && (
        <Card>
          <LogView path="/jobmanager/stdout" empty="Nothing was printed" />
        </Card>
      )}
      {part === "logs" && <LogFiles path="/jobmanager" route={["job-manager", "logs"]} file={file} />}
      {part === "thread-dump" && <ThreadDumpView path="/jobmanager" />}
      {part === "profiler" && <ProfilerView path="/jobmanager" />}
    </>
  );
}

function Configuration() {
  const { data, error } = usePoll<{ key: string; value: string }[]>("/jobmanager/config", { once: true });
  return <Card flush>{data ? <Settings settings={data} /> : <Waiting error={error} lines={8} />}</Card>;
}

/** Keys and values, with a search. */
export function Settings({ settings }: { settings: { key: string; value: string }[] }) {
  const [search, setSearch] = useState("");
  if (settings.length === 0) return <Empty title="Nothing is set" />;
  const wanted = search.toLowerCase();
  const shown = settings.filter((one) => `${one.key} ${one.value}`.toLowerCase().includes(wanted));
  return (
    <>
      <div class="toolbar padded">
        <label class="search">
          <Icon name="search" size={16} />
          <input
            type="search"
            placeholder="Key or value"
            aria-label="Search settings"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <span class="muted">{count(shown.length)} settings</span>
      </div>
      <Table
        label="Settings"
        rows={shown}
        id={(one) => one.key}
        initial={{ title: "Key", descending: false }}
        columns={[
          { title: "Key", main: true, sort: (one) => one.key, cell: (one) => <code>{one.key}</code> },
          { title: "Value", sort: (one) => one.value, cell: (one) => <code class="wrap">{one.value}</code> },
        ]}
      />
    </>
  );
}

function Metrics() {
  const names = usePoll<{ id: string }[]>("/jobmanager/metrics", { once: true });
  const wanted = names.data?.map((metric) => metric.id) ?? [];
  const values = usePoll<MetricValue[]>(wanted.length ? `/jobmanager/metrics?get=${wanted.map(encodeURIComponent).join(",")}` : null);
  if (!names.data) return <Waiting error={names.error} />;
  return (
    <Card flush>
      {wanted.length === 0 ? (
        <Empty title="The job manager reports no metrics" />
      ) : !values.data ? (
        <Waiting error={values.error} />
      ) : (
        <Table
          label="Metrics of the job manager"
          rows={values.data}
          id={(metric) => metric.id}
          initial={{ title: "Metric", descending: false }}
          columns={[
            { title: "Metric", main: true, sort: (metric) => metric.id, cell: (metric) => <code>{metric.id}</code> },
            { title: "Value", numeric: true, sort: (metric) => Number(metric.value), cell: (metric) => readable(metric) },
          ]}
        />
      )}
    </Card>
  );
}

function readable({ id, value }: MetricValue): string {
  const number = Number(value);
  if (value === "" || Number.isNaN(number)) return value;
  return /Memory|Used|Committed|Max$|Capacity/.test(id) && !/Count/.test(id) ? bytes(number) : count(number);
}

function Environment() {
  const { data, error } = usePoll<{ jvm: { version: string; arch: string; options: string[] }; classpath: string[] }>(
    "/jobmanager/environment",
    { once: true },
  );
  if (!data) return <Waiting error={error} lines={6} />;
  return (
    <>
      <Card title="Java">
        <p>
          {data.jvm.version}, {data.jvm.arch}
        </p>
        {data.jvm.options.length > 0 && <pre class="code">{data.jvm.options.join("\n")}</pre>}
      </Card>
      <Card title="Class path">
        <pre class="code">{data.classpath.join("\n") || "empty"}</pre>
      </Card>
    </>
  );
}
