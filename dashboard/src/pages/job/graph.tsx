// The graph of a job: one card per vertex, colored by its load.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobDetails, JobVertex } from "../../api/types";
import { LoadBar } from "../../components/basics";
import { Icon } from "../../components/icon";
import { duration, percent, vertexName, rate, watermarkLag } from "../../lib/format";
import { layOut, type Direction, type Layout, type Sizes } from "../../lib/layout";
import { level, type VertexLoad } from "../../lib/load";
import type { Loads } from "./loads";

const NARROW = matchMedia("(max-width: 720px)");
const LARGEST = 1.4;
const SMALLEST = 0.08;
// Below this scale the cards show the name and the load only, in large type.
const FAR_BELOW = 0.55;

interface View {
  x: number;
  y: number;
  scale: number;
}

export function JobGraph({ job, loads, selected, onSelect }: {
  job: JobDetails;
  loads: Loads;
  selected: string | undefined;
  onSelect: (vertex: string) => void;
}) {
  const direction: Direction = NARROW.matches ? "TB" : "LR";
  const shape = JSON.stringify(job.plan.nodes.map((node) => [node.id, node.inputs]));
  const placed = useMemo(() => layOut(job.plan.nodes, direction), [shape, direction]);
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLDivElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  const [far, setFar] = useState(false);

  function show(next: View): void {
    view.current = next;
    if (canvas.current) canvas.current.style.transform = `translate(${next.x}px, ${next.y}px) scale(${next.scale})`;
    setFar(next.scale < FAR_BELOW);
  }

  function fit(): void {
    const element = frame.current;
    if (!element) return;
    element.style.height = `${frameHeight(placed, element.clientWidth)}px`;
    show(fitting(placed, element));
  }

  function zoom(factor: number, at?: { x: number; y: number }): void {
    const element = frame.current;
    if (!element) return;
    const { x, y, scale } = view.current;
    const center = at ?? { x: element.clientWidth / 2, y: element.clientHeight / 2 };
    const next = Math.min(LARGEST, Math.max(SMALLEST, scale * factor));
    show({ x: center.x - ((center.x - x) * next) / scale, y: center.y - ((center.y - y) * next) / scale, scale: next });
  }

  useLayoutEffect(() => {
    fit();
    requestAnimationFrame(() => performance.mark("job-graph-painted", { detail: placed.nodes.length }));
  }, [placed]);

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      // A new height comes from here.
      if (element.clientWidth !== width) fit();
      width = element.clientWidth;
    });
    observer.observe(element);
    // A wheel with Ctrl, which a pinch on a touch pad also sends, zooms. Without it the page scrolls.
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), { x: event.clientX - box.left, y: event.clientY - box.top });
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, [placed]);

  const vertices = new Map(job.vertices.map((vertex) => [vertex.id, vertex]));
  return (
    <div
      ref={frame}
      class={`graph ${far ? "far" : ""} ${placed.sizes.compact ? "compact" : ""}`}
      onPointerDown={(event) => drag(event, view.current, show)}
      role="group"
      aria-label="Graph of the job"
    >
      <div ref={canvas} class="graph-canvas" style={{ width: `${placed.width}px`, height: `${placed.height}px` }}>
        <svg width={placed.width} height={placed.height} aria-hidden="true">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0,0 L8,4 L0,8 z" />
            </marker>
          </defs>
          {placed.edges.map((edge, index) => (
            <g key={index} class={`edge ${level(loads.byVertex.get(edge.from)?.backPressured ?? 0) === "ok" ? "" : "pressed"}`}>
              <path d={edge.path} marker-end="url(#arrow)" />
              <text x={edge.label.x} y={edge.label.y - 7}>
                {edge.strategy}
              </text>
            </g>
          ))}
        </svg>
        {placed.nodes.map((node) => (
          <Node
            key={node.id}
            x={node.x}
            y={node.y}
            vertex={vertices.get(node.id)}
            sizes={placed.sizes}
            load={loads.byVertex.get(node.id)}
            root={loads.roots.includes(node.id)}
            selected={selected === node.id}
            onSelect={() => onSelect(node.id)}
          />
        ))}
      </div>
      <div class="graph-tools">
        <button type="button" class="icon-button" onClick={() => zoom(1.25)} aria-label="Zoom in" title="Zoom in">
          <Icon name="plus" />
        </button>
        <button type="button" class="icon-button" onClick={() => zoom(0.8)} aria-label="Zoom out" title="Zoom out (or Ctrl and the wheel)">
          <Icon name="minus" />
        </button>
        <button type="button" class="icon-button" onClick={fit} aria-label="Show the whole graph" title="Show the whole graph">
          <Icon name="fit" />
        </button>
      </div>
      <div class="graph-legend" aria-hidden="true">
        <span>
          <i class="load-busy" /> busy
        </span>
        <span>
          <i class="load-pressed" /> back-pressured
        </span>
        <span>
          <i class="load-idle" /> idle
        </span>
      </div>
    </div>
  );
}

function Node({ x, y, sizes, vertex, load, root, selected, onSelect }: {
  x: number;
  y: number;
  sizes: Sizes;
  vertex: JobVertex | undefined;
  load: VertexLoad | undefined;
  root: boolean;
  selected: boolean;
  onSelect: () => void;
}) {
  const name = vertexName(vertex?.name ?? "");
  const lag = watermarkLag(load?.watermark ?? NaN);
  return (
    <button
      type="button"
      class={`node ${root ? "root" : ""} ${selected ? "selected" : ""} state-${(vertex?.status ?? "created").toLowerCase()}`}
      style={{
        left: `${x}px`,
        top: `${y}px`,
        width: `${sizes.width}px`,
        height: `${sizes.height}px`,
        "--busy-share": String(load?.busy || 0),
        "--pressed-share": String(load?.backPressured || 0),
      }}
      onClick={onSelect}
      title={name}
    >
      <span class="node-head">
        <span class="node-title">{name}</span>
        <span class="node-parallelism" title={`parallelism ${vertex?.parallelism ?? "unknown"}`}>
          ×{vertex?.parallelism ?? "?"}
        </span>
      </span>
      <span class="node-load">
        <span>busy {percent(load?.busy ?? NaN)}</span>
        <span>back-pressured {percent(load?.backPressured ?? NaN)}</span>
      </span>
      <LoadBar busy={load?.averages.busy ?? NaN} backPressured={load?.averages.backPressured ?? NaN} />
      <span class="node-facts">
        <span>
          <b>{rate(load?.recordsIn ?? NaN)}</b> in
        </span>
        <span>
          <b>{rate(load?.recordsOut ?? NaN)}</b> out
        </span>
        <span title="Distance of the watermark from the clock">
          <b>{duration(Math.max(0, lag))}</b> lag
        </span>
      </span>
      {root && <span class="node-mark">Bottleneck</span>}
    </button>
  );
}

// Space for the legend and the tools below the graph.
const FOOT = 48;
const LOWEST_FRAME = 260;

/** The height that the graph needs at full width, within bounds. */
function frameHeight(placed: Layout, width: number): number {
  const scale = Math.min(1, width / (placed.width || 1));
  return Math.round(Math.min(0.64 * innerHeight, Math.max(LOWEST_FRAME, placed.height * scale + 2 * FOOT)));
}

function fitting(placed: Layout, element: HTMLElement): View {
  const { clientWidth: width } = element;
  const height = element.clientHeight - FOOT;
  const scale = Math.max(SMALLEST, Math.min(1, width / (placed.width || 1), height / (placed.height || 1)));
  return { x: (width - placed.width * scale) / 2, y: (height - placed.height * scale) / 2, scale };
}

const CLICK_DISTANCE = 4;

function drag(start: PointerEvent, from: View, show: (view: View) => void): void {
  if (start.button !== 0 || (start.target as Element).closest(".graph-tools")) return;
  let moved = false;
  const move = (event: PointerEvent) => {
    const by = { x: event.clientX - start.clientX, y: event.clientY - start.clientY };
    moved ||= Math.hypot(by.x, by.y) > CLICK_DISTANCE;
    if (moved) show({ x: from.x + by.x, y: from.y + by.y, scale: from.scale });
  };
  const end = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", end);
    removeEventListener("pointercancel", end);
    // The click at the end of a drag selects no vertex.
    if (moved) addEventListener("click", (event) => event.stopPropagation(), { capture: true, once: true });
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
}
