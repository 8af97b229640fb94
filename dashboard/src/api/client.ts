// Calls of the REST API: errors in Flink's shape, the token, and the state of the connection.
import { Store, storedText } from "../lib/store";
import type { SavepointStatus, Triggered } from "./types";

/** The token that changes need when the server listens beyond loopback. It lasts as long as the browser tab. */
export const token = storedText(() => sessionStorage, "firesteel-token");

/** False while the server does not answer. */
export const connected = new Store(true);

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }

  get needsToken(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

type Change = "POST" | "PATCH" | "PUT" | "DELETE";

async function request(method: "GET" | Change, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  if (token.value) headers["Authorization"] = `Bearer ${token.value}`;
  const options: RequestInit = { method, headers, signal: signal ?? null };
  if (body !== undefined) options.body = isForm ? body : JSON.stringify(body);
  let response: Response;
  try {
    response = await fetch(`.${path}`, options);
  } catch (error) {
    if (!signal?.aborted) connected.set(false);
    throw error instanceof TypeError ? new ApiError(0, "The server does not answer.") : error;
  }
  connected.set(true);
  if (!response.ok) throw new ApiError(response.status, await errorText(response));
  return response;
}

async function errorText(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { errors } = JSON.parse(text) as { errors?: string[] };
    if (errors?.length) return errors.join("\n");
  } catch {
    // A proxy answers with its own page.
  }
  return `The server answered with status ${response.status}.`;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request("GET", path, undefined, signal)).json() as Promise<T>;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await request("GET", path, undefined, signal)).text();
}

export async function send<T>(method: Change, path: string, body?: unknown): Promise<T> {
  const text = await (await request(method, path, body)).text();
  return (text ? JSON.parse(text) : {}) as T;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 3000;

/** Start a savepoint, a stop or a checkpoint, and wait until it has ended. */
export async function runOperation(start: string, body: unknown, status: (trigger: string) => string): Promise<SavepointStatus> {
  const { "request-id": trigger } = await send<Triggered>("POST", start, body);
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    const answer = await get<SavepointStatus>(status(trigger));
    if (answer.status.id === "COMPLETED") {
      const failure = answer.operation?.["failure-cause"] ?? answer.operation?.failureCause;
      if (failure) throw new ApiError(500, failure["stack-trace"] || failure.class);
      return answer;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** Run at most `limit` calls at the same time. */
export async function inParallel<T, R>(items: T[], limit: number, call: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length) {
      const index = next++;
      results[index] = await call(items[index] as T);
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
