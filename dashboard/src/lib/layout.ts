// Places the vertices of a job and the edges between them.
import { graphlib, layout } from "@dagrejs/dagre";
import type { PlanNode } from "../api/types";

export type Direction = "LR" | "TB";

// Larger graphs have cards with the name and the load only.
const COMPACT_ABOVE = 24;
const MARGIN = 18;

export interface Sizes {
  compact: boolean;
  width: number;
  height: number;
  rankGap: number;
  nodeGap: number;
}

const FULL: Sizes = { compact: false, width: 232, height: 116, rankGap: 76, nodeGap: 28 };
const COMPACT: Sizes = { compact: true, width: 190, height: 66, rankGap: 46, nodeGap: 14 };

interface Point {
  x: number;
  y: number;
}

export interface PlacedNode extends Point {
  id: string;
}

export interface PlacedEdge {
  from: string;
  to: string;
  strategy: string;
  path: string;
  label: Point;
}

export interface Layout {
  sizes: Sizes;
  width: number;
  height: number;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

export function layOut(nodes: PlanNode[], direction: Direction): Layout {
  const sizes = nodes.length > COMPACT_ABOVE ? COMPACT : FULL;
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: sizes.nodeGap, ranksep: sizes.rankGap });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: sizes.width, height: sizes.height });
  for (const node of nodes) {
    (node.inputs ?? []).forEach((input, index) => {
      if (graph.hasNode(input.id)) graph.setEdge(input.id, node.id, { strategy: input.ship_strategy }, String(index));
    });
  }
  layout(graph);
  const center = (id: string) => graph.node(id) as Point;
  const placed = graph.nodes().map((id) => {
    const { x, y } = center(id);
    return { id, x: x - sizes.width / 2, y: y - sizes.height / 2 };
  });
  const ways = graph.edges().map((edge) => {
    const { points, strategy } = graph.edge(edge) as { points: Point[]; strategy: string };
    const way = [leaving(center(edge.v), sizes, direction), ...points.slice(1, -1), entering(center(edge.w), sizes, direction)];
    return { from: edge.v, to: edge.w, strategy, way };
  });
  // The size that dagre gives is larger than its picture, which would not be in the middle.
  const corners = placed.flatMap(({ x, y }) => [{ x, y }, { x: x + sizes.width, y: y + sizes.height }]);
  const all = [...corners, ...ways.flatMap(({ way }) => way)];
  const [left, right] = extent(all.map(({ x }) => x));
  const [top, bottom] = extent(all.map(({ y }) => y));
  const moved = ({ x, y }: Point): Point => ({ x: x - left + MARGIN, y: y - top + MARGIN });
  return {
    sizes,
    width: right - left + 2 * MARGIN,
    height: bottom - top + 2 * MARGIN,
    nodes: placed.map((node) => ({ ...node, ...moved(node) })),
    edges: ways.map(({ from, to, strategy, way }) => {
      const points = way.map(moved);
      return { from, to, strategy, path: smooth(points, direction), label: middle(points) };
    }),
  };
}

function extent(values: number[]): [number, number] {
  return values.length === 0 ? [0, 0] : [Math.min(...values), Math.max(...values)];
}

/** Edges leave in the middle of the right side, or of the bottom, and enter in the middle of the opposite side. */
function leaving({ x, y }: Point, sizes: Sizes, direction: Direction): Point {
  return direction === "LR" ? { x: x + sizes.width / 2, y } : { x, y: y + sizes.height / 2 };
}

function entering({ x, y }: Point, sizes: Sizes, direction: Direction): Point {
  return direction === "LR" ? { x: x - sizes.width / 2, y } : { x, y: y - sizes.height / 2 };
}

/** Curves between the points that start and end in the direction of the graph. */
function smooth(points: Point[], direction: Direction): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  let from = first;
  for (const to of rest) {
    const half = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
    const [a, b] = direction === "LR" ? [`${half.x},${from.y}`, `${half.x},${to.y}`] : [`${from.x},${half.y}`, `${to.x},${half.y}`];
    path += ` C${a} ${b} ${to.x},${to.y}`;
    from = to;
  }
  return path;
}

function middle(points: Point[]): Point {
  return points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
}
