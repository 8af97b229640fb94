// The load of all vertices of a job, with its history since the page was opened.
import { useRef } from "preact/hooks";
import { ApiError, get, inParallel } from "../../api/client";
import { usePoll, usePolledCall } from "../../api/poll";
import type { AggregatedMetric, JobBackPressure, JobDetails } from "../../api/types";
import { History } from "../../lib/history";
import { LOAD_METRICS, toLoad, type VertexLoad } from "../../lib/load";

export interface Loads {
  byVertex: ReadonlyMap<string, VertexLoad>;
  /** The vertices where back pressure begins, the busiest first. */
  roots: string[];
  /** Samples with keys from `sampleKey`. */
  history: History;
}

const PARALLEL_CALLS = 6;
const NO_LOADS: ReadonlyMap<string, VertexLoad> = new Map();

export function vertexPath(jid: string, vertex: string): string {
  return `/jobs/${jid}/vertices/${vertex}`;
}

export type Sampled = "busy" | "idle" | "backPressured" | "recordsIn" | "recordsOut" | "bytesIn" | "bytesOut" | "watermark";

export function sampleKey(vertex: string, what: Sampled): string {
  return `${vertex}/${what}`;
}

export function useLoads(job: JobDetails | undefined, once: boolean): Loads {
  const history = useRef(new History());
  const vertices = job?.vertices.map((vertex) => vertex.id) ?? [];
  const { data } = usePolledCall(
    job && vertices.length > 0 ? `${job.jid}:${vertices.join()}` : null,
    async (signal) => {
      const found = new Map<string, VertexLoad>();
      const query = LOAD_METRICS.join();
      await inParallel(vertices, PARALLEL_CALLS, async (vertex) => {
        try {
          found.set(vertex, toLoad(await get<AggregatedMetric[]>(`${vertexPath(job!.jid, vertex)}/subtasks/metrics?get=${query}`, signal)));
        } catch (error) {
          // A vertex that has not started has no metrics.
          if (!(error instanceof ApiError) || error.status === 0) throw error;
        }
      });
      record(history.current, found);
      return found;
    },
    { once },
  );
  const byVertex = data ?? NO_LOADS;
  const pressure = usePoll<JobBackPressure>(job && !once ? `/jobs/${job.jid}/backpressure` : null);
  const roots = [...(pressure.data?.roots ?? [])].sort((a, b) => b.busy - a.busy).map((root) => root.id);
  return { byVertex, roots, history: history.current };
}

function record(history: History, loads: ReadonlyMap<string, VertexLoad>): void {
  const now = Date.now();
  for (const [vertex, load] of loads) {
    const values: Record<Sampled, number> = {
      ...load.averages,
      recordsIn: load.recordsIn,
      recordsOut: load.recordsOut,
      bytesIn: load.bytesIn,
      bytesOut: load.bytesOut,
      watermark: load.watermark,
    };
    for (const [what, value] of Object.entries(values)) history.add(sampleKey(vertex, what as Sampled), now, value);
  }
}
