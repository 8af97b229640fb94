// Replies of the REST API, with Flink's field names. Fields that only Firesteel sends are optional.

export type JobState =
  | "INITIALIZING"
  | "CREATED"
  | "RUNNING"
  | "FAILING"
  | "FAILED"
  | "CANCELLING"
  | "CANCELED"
  | "FINISHED"
  | "RESTARTING"
  | "SUSPENDED"
  | "RECONCILING";

export interface DashboardConfig {
  "refresh-interval": number;
  "flink-version": string;
  "flink-revision": string;
  "firesteel-version"?: string;
  features: {
    "web-submit": boolean;
    "web-cancel": boolean;
    "web-rescale": boolean;
    "web-history": boolean;
  };
}

export interface ClusterOverview {
  taskmanagers: number;
  "slots-total": number;
  "slots-available": number;
  "jobs-running": number;
  "jobs-finished": number;
  "jobs-cancelled": number;
  "jobs-failed": number;
  "flink-version": string;
}

/** Number of tasks by state, in lower or upper case. */
export type TaskCounts = Record<string, number>;

export interface JobSummary {
  jid: string;
  name: string;
  state: JobState;
  "start-time": number;
  "end-time": number;
  duration: number;
  "last-modification"?: number;
  tasks: TaskCounts;
}

export interface IoMetrics {
  "read-bytes": number;
  "read-bytes-complete": boolean;
  "write-bytes": number;
  "write-bytes-complete": boolean;
  "read-records": number;
  "read-records-complete": boolean;
  "write-records": number;
  "write-records-complete": boolean;
  "accumulated-backpressured-time"?: number;
  "accumulated-idle-time"?: number;
  "accumulated-busy-time"?: number | string;
}

export interface JobVertex {
  id: string;
  name: string;
  status: string;
  parallelism: number;
  maxParallelism: number;
  "start-time": number;
  "end-time": number;
  duration: number;
  tasks: TaskCounts;
  metrics: IoMetrics;
}

export interface PlanNode {
  id: string;
  description: string;
  parallelism: number;
  inputs?: { id: string; ship_strategy: string; num?: number }[];
}

export interface JobDetails {
  jid: string;
  name: string;
  state: JobState;
  "start-time": number;
  "end-time": number;
  duration: number;
  now?: number;
  timestamps?: Record<string, number>;
  "job-type": string;
  schedulerType?: string;
  "status-counts": TaskCounts;
  vertices: JobVertex[];
  plan: { jid: string; name?: string; type: string; nodes: PlanNode[] };
}

export interface AggregatedMetric {
  id: string;
  min?: number | string;
  max?: number | string;
  avg?: number | string;
  sum?: number | string;
  skew?: number | string;
}

export interface MetricValue {
  id: string;
  value: string;
}

export interface Subtask {
  subtask: number;
  status: string;
  attempt: number;
  endpoint: string;
  start_time?: number;
  "start-time"?: number;
  "end-time": number;
  duration: number;
  "taskmanager-id": string;
  "status-duration"?: Record<string, number>;
  metrics: IoMetrics;
}

export interface VertexDetails {
  id: string;
  name: string;
  parallelism: number;
  maxParallelism: number;
  now: number;
  subtasks: Subtask[];
}

export type BackPressureLevel = "ok" | "low" | "high";

export interface BackPressure {
  status: string;
  "backpressure-level": BackPressureLevel;
  "end-timestamp": number;
  subtasks: {
    subtask: number;
    "backpressure-level": BackPressureLevel;
    ratio: number;
    idleRatio: number;
    busyRatio: number;
  }[];
}

/** Firesteel's own call: back pressure of all vertices, and the vertices that cause it. */
export interface JobBackPressure {
  roots: { id: string; name: string; level: BackPressureLevel; ratio: number; busy: number }[];
}

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
}

export interface FlameGraph {
  endTimestamp: number;
  data?: FlameNode | null;
}

export interface Accumulator {
  name: string;
  type: string;
  value: string;
}

export interface SubtaskTimes {
  subtasks: { subtask: number; endpoint?: string; duration: number; timestamps: Record<string, number> }[];
}

export interface VertexTaskManagers {
  taskmanagers: {
    endpoint: string;
    "taskmanager-id": string;
    status: string;
    "start-time": number;
    "end-time": number;
    duration: number;
    metrics: IoMetrics;
    "status-counts": TaskCounts;
  }[];
}

export type Spread = Record<string, number | string>;

export interface Checkpoint {
  id: number;
  status: "COMPLETED" | "FAILED" | "IN_PROGRESS";
  is_savepoint: boolean;
  checkpoint_type?: string;
  savepointFormat?: string | null;
  trigger_timestamp: number;
  latest_ack_timestamp: number | null;
  end_to_end_duration: number;
  checkpointed_size: number;
  state_size: number;
  processed_data?: number;
  persisted_data?: number;
  num_subtasks: number;
  num_acknowledged_subtasks: number;
  external_path?: string | null;
  discarded?: boolean;
  failure_message?: string | null;
  failure_timestamp?: number | null;
  /** Why the checkpoint was slow (only Firesteel). */
  explanation?: string | null;
}

export interface Checkpoints {
  counts: { total: number; in_progress: number; completed: number; failed: number; restored: number };
  summary: Record<string, Spread>;
  latest: {
    completed: Checkpoint | null;
    savepoint: Checkpoint | null;
    failed: Checkpoint | null;
    restored: {
      id: number;
      restore_timestamp: number;
      is_savepoint: boolean;
      external_path: string | null;
    } | null;
  };
  history: Checkpoint[];
}

export interface CheckpointTask {
  num_subtasks: number;
  num_acknowledged_subtasks: number;
  latest_ack_timestamp: number;
  end_to_end_duration: number;
  checkpointed_size: number;
  state_size: number;
}

export interface CheckpointDetails extends Checkpoint {
  tasks: Record<string, CheckpointTask>;
}

export interface CheckpointSubtasks {
  subtasks: {
    index: number;
    status: string;
    ack_timestamp?: number;
    end_to_end_duration?: number;
    checkpointed_size?: number;
    state_size?: number;
    checkpoint?: { sync: number; async: number };
    alignment?: { duration: number; processed?: number; persisted?: number };
    start_delay?: number;
    unaligned_checkpoint?: boolean;
    aborted?: boolean;
  }[];
}

export interface CheckpointConfig {
  mode: string;
  interval: number;
  timeout: number;
  min_pause: number;
  max_concurrent: number;
  externalization: { enabled: boolean; delete_on_cancellation: boolean };
  state_backend: string;
  checkpoint_storage: string;
  unaligned_checkpoints: boolean;
  tolerable_failed_checkpoints: number;
  checkpoints_after_tasks_finish: boolean;
}

export interface ExceptionEntry {
  exceptionName: string;
  stacktrace: string;
  timestamp: number;
  taskName: string | null;
  endpoint: string | null;
  taskManagerId: string | null;
  failureLabels: Record<string, string>;
  concurrentExceptions: ExceptionEntry[];
}

export interface JobExceptions {
  exceptionHistory: { truncated: boolean; entries: ExceptionEntry[] };
}

export interface JobConfig {
  "execution-config": {
    "restart-strategy": string;
    "job-parallelism": number;
    "object-reuse-mode": boolean;
    "user-config": Record<string, string>;
  };
}

export interface Resource {
  cpuCores: number;
  taskHeapMemory?: number;
  taskOffHeapMemory?: number;
  managedMemory?: number;
  networkMemory?: number;
}

export interface TaskManager {
  id: string;
  path: string;
  dataPort: number;
  timeSinceLastHeartbeat: number;
  slotsNumber: number;
  freeSlots: number;
  assignedTasks?: number;
  hardware: { cpuCores: number; physicalMemory: number; freeMemory: number; managedMemory: number };
}

export interface TaskManagerDetails extends TaskManager {
  allocatedSlots?: { jobId: string; assignedTasks?: number; resource: Resource }[];
  metrics?: {
    heapUsed: number;
    heapCommitted: number;
    heapMax: number;
    nonHeapUsed: number;
    nonHeapMax: number;
    directUsed: number;
    directMax: number;
    garbageCollectors: { name: string; count: number; time: number }[];
  };
}

export interface LogList {
  logs: { name: string; size: number; mtime: number }[];
}

export interface ThreadDump {
  threadInfos: { threadName: string; stringifiedThreadInfo: string }[];
}

export interface Profile {
  status: "RUNNING" | "FINISHED" | "FAILED";
  mode: string;
  triggerTime: number;
  duration: number;
  message: string | null;
  outputFile: string | null;
}

export interface ProfileList {
  profilingList: Profile[];
}

export interface Program {
  id: string;
  name: string;
  uploaded: number;
}

export interface Triggered {
  "request-id": string;
}

export interface SavepointStatus {
  status: { id: "IN_PROGRESS" | "COMPLETED" };
  operation: {
    location?: string;
    checkpointId?: number;
    "failure-cause"?: { class: string; "stack-trace": string };
    failureCause?: { class: string; "stack-trace": string };
  } | null;
}

export type ResourceRequirements = Record<string, { parallelism: { lowerBound: number; upperBound: number } }>;
