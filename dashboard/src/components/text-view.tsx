// Long texts: logs, standard output, thread dumps.
import { useEffect, useRef, useState } from "preact/hooks";
import { getText } from "../api/client";
import { usePolledCall } from "../api/poll";
import { Copy, Empty, Waiting } from "./basics";
import { Icon } from "./icon";

// A browser shows this many lines without delay. The search works on the whole text.
const MOST_LINES = 3000;
const NOISE = /\b(ERROR|FATAL|CRITICAL)\b/;
const WARNING = /\bWARN(?:ING)?\b/;

export function LogView({ path, empty }: { path: string; empty: string }) {
  const { data, error } = usePolledCall(path, (signal) => getText(path, signal));
  const [search, setSearch] = useState("");
  const [following, setFollowing] = useState(true);
  const place = useRef<HTMLPreElement>(null);

  useEffect(() => {
    if (following && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [data, following, search]);

  if (error?.status === 404) return <Empty title="Nothing was logged here" />;
  if (data === undefined) return <Waiting error={error} lines={8} />;
  if (!data.trim()) return <Empty title={empty} />;
  const wanted = search.toLowerCase();
  const all = data.trimEnd().split("\n");
  const lines = wanted ? all.filter((line) => line.toLowerCase().includes(wanted)) : all;
  const shown = lines.slice(-MOST_LINES);
  return (
    <div class="log">
      <div class="toolbar">
        <label class="search">
          <Icon name="search" size={16} />
          <input
            type="search"
            placeholder="Lines that contain …"
            aria-label="Filter lines"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={following} onChange={(event) => setFollowing(event.currentTarget.checked)} />
          Follow
        </label>
        <span class="muted">
          {shown.length < lines.length ? `last ${shown.length} of ${lines.length} lines` : `${lines.length} lines`}
        </span>
        <a class="button small" href={`.${path}`} target="_blank" rel="noreferrer">
          Open as text
        </a>
        <Copy text={data} label="Copy the text" />
      </div>
      <pre ref={place} class="code log-lines" tabIndex={0}>
        {shown.map((line, index) => (
          <span key={index} class={NOISE.test(line) ? "line-bad" : WARNING.test(line) ? "line-warn" : undefined}>
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </div>
  );
}
