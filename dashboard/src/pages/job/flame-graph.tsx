// The flame graph of a vertex: which function takes the time.
import { useEffect, useState } from "preact/hooks";
import { usePoll } from "../../api/poll";
import type { FlameGraph, FlameNode } from "../../api/types";
import { Empty, Moment, Waiting } from "../../components/basics";
import { Icon } from "../../components/icon";
import { count } from "../../lib/format";

const KINDS = [
  ["on_cpu", "On CPU"],
  ["off_cpu", "Waiting"],
  ["full", "All"],
] as const;

const DISABLED = -2;
// The server has begun to sample, and has no graph yet.
const NONE_YET = -1;
const ROW = 20;
// Narrower parts are not drawn.
const NARROWEST = 0.002;

interface Frame {
  node: FlameNode;
  depth: number;
  left: number;
  width: number;
  path: string;
}

export function FlameGraphView({ path, ended }: { path: string; ended: boolean }) {
  const [kind, setKind] = useState<string>("on_cpu");
  // A graph that is newer than this one is wanted.
  const [last, setLast] = useState(NONE_YET);
  const [sampling, setSampling] = useState(true);
  const { data, error } = usePoll<FlameGraph>(ended ? null : `${path}/flamegraph?type=${kind}`, { once: !sampling });
  useEffect(() => {
    if (data) setSampling(data.endTimestamp !== DISABLED && data.endTimestamp <= last);
  }, [data, last]);
  const sampleAgain = () => {
    setLast(data?.endTimestamp ?? NONE_YET);
    setSampling(true);
  };
  if (ended) return <Empty title="The job has ended">Stacks are sampled while a job runs.</Empty>;
  return (
    <>
      <div class="toolbar">
        <div class="segments" role="group" aria-label="Kind of samples">
          {KINDS.map(([id, label]) => (
            <button key={id} type="button" aria-pressed={kind === id} onClick={() => setKind(id)}>
              {label}
            </button>
          ))}
        </div>
        <button type="button" class="button small" disabled={sampling} onClick={sampleAgain}>
          {sampling ? "Sampling …" : "Sample again"}
        </button>
      </div>
      {error?.status === 404 ? <NoSamples /> : !data ? <Waiting error={error} lines={6} /> : <Result graph={data} />}
    </>
  );
}

function Result({ graph }: { graph: FlameGraph }) {
  if (graph.endTimestamp === DISABLED) {
    return (
      <Empty icon="flame" title="Flame graphs are switched off">
        <p>
          Set <code>rest.flamegraph.enabled: true</code> and start the session again.
        </p>
      </Empty>
    );
  }
  if (graph.endTimestamp === NONE_YET) {
    return (
      <Empty icon="flame" title="Sampling">
        The server looks at the stacks of the subtasks for some seconds.
      </Empty>
    );
  }
  if (!graph.data || graph.data.value === 0) {
    return <NoSamples />;
  }
  return <Flames root={graph.data} time={graph.endTimestamp} />;
}

function NoSamples() {
  return (
    <Empty icon="flame" title="No samples">
      The subtasks did nothing of this kind while they were watched.
    </Empty>
  );
}

function Flames({ root, time }: { root: FlameNode; time: number }) {
  const [zoomed, setZoomed] = useState("");
  const [search, setSearch] = useState("");
  const all = frames(root, zoomed);
  const wanted = search.toLowerCase();
  const found = (name: string) => wanted !== "" && name.toLowerCase().includes(wanted);
  const depth = all.reduce((deepest, frame) => Math.max(deepest, frame.depth), 0) + 1;
  const matched = wanted ? matchedSamples(root, found) : 0;
  return (
    <>
      <div class="toolbar">
        <label class="search">
          <Icon name="search" size={16} />
          <input type="search" placeholder="Function" aria-label="Search functions" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        {wanted && <span class="muted">{share(matched, root.value)} of the samples</span>}
        {zoomed && (
          <button type="button" class="button small" onClick={() => setZoomed("")}>
            Show all
          </button>
        )}
        <span class="muted small">
          {count(root.value)} samples at <Moment at={time} />
        </span>
      </div>
      <div class="flames" style={{ height: `${depth * ROW}px` }} role="tree" aria-label="Flame graph">
        {all.map((frame) => (
          <button
            key={frame.path}
            type="button"
            role="treeitem"
            class={`flame hue-${hue(frame.node.name)} ${found(frame.node.name) ? "found" : ""} ${wanted && !found(frame.node.name) ? "dim" : ""}`}
            style={{ top: `${frame.depth * ROW}px`, left: `${100 * frame.left}%`, width: `${100 * frame.width}%` }}
            title={`${frame.node.name}\n${count(frame.node.value)} samples, ${share(frame.node.value, root.value)}`}
            onClick={() => setZoomed(frame.path)}
          >
            {frame.width > 0.03 ? frame.node.name : ""}
          </button>
        ))}
      </div>
      <Hottest root={root} />
    </>
  );
}

/** Functions with the most samples of their own, as a list that a screen reader can read. */
function Hottest({ root }: { root: FlameNode }) {
  const own = new Map<string, number>();
  const visit = (node: FlameNode) => {
    const below = node.children.reduce((sum, child) => sum + child.value, 0);
    if (node.value > below) own.set(node.name, (own.get(node.name) ?? 0) + node.value - below);
    node.children.forEach(visit);
  };
  visit(root);
  const top = [...own].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return (
    <ol class="hottest" aria-label="Functions with the most samples">
      {top.map(([name, samples]) => (
        <li key={name}>
          <code class="wrap">{name}</code>
          <span>{share(samples, root.value)}</span>
        </li>
      ))}
    </ol>
  );
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(1)}%`;
}

function matchedSamples(node: FlameNode, found: (name: string) => boolean): number {
  return found(node.name) ? node.value : node.children.reduce((sum, child) => sum + matchedSamples(child, found), 0);
}

/** The frames to draw. The zoomed frame and those above it have the full width. */
function frames(root: FlameNode, zoomed: string): Frame[] {
  const result: Frame[] = [];
  const visit = (node: FlameNode, depth: number, left: number, width: number, path: string) => {
    if (width < NARROWEST) return;
    result.push({ node, depth, left, width, path });
    const above = zoomed !== path && zoomed.startsWith(path);
    let at = left;
    node.children.forEach((child, index) => {
      const childPath = `${path}/${index}`;
      const onWay = zoomed === childPath || zoomed.startsWith(`${childPath}/`);
      if (above && zoomed !== "" && !onWay) return;
      const part = onWay ? width : (width * child.value) / node.value;
      visit(child, depth + 1, onWay ? left : at, part, childPath);
      at += part;
    });
  };
  visit(root, 0, 0, 1, "");
  return result;
}

const HUES = 6;

/** The same function has the same color. */
function hue(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) | 0;
  return Math.abs(hash) % HUES;
}
