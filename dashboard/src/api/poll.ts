// Data that is fetched again and again while its component is on the screen.
import { useEffect, useRef, useState } from "preact/hooks";
import { Store } from "../lib/store";
import { ApiError, get } from "./client";

/** Milliseconds between two fetches; the server's configuration sets it. */
export const refreshInterval = new Store(3000);

/** False: the user has stopped the updates. */
export const live = new Store(true);

export interface Polled<T> {
  data: T | undefined;
  error: ApiError | undefined;
  refresh: () => void;
}

interface PollOptions {
  /** Fetch once, for data that does not change. */
  once?: boolean;
}

/** Poll a path of the REST API. Null means: nothing to fetch. */
export function usePoll<T>(path: string | null, options: PollOptions = {}): Polled<T> {
  return usePolledCall<T>(path, (signal) => get<T>(path as string, signal), options);
}

/** Poll with a function. The data belongs to `key`: a different key starts again without data. */
export function usePolledCall<T>(
  key: string | null,
  call: (signal: AbortSignal) => Promise<T>,
  { once = false }: PollOptions = {},
): Polled<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error?: ApiError }>({ key });
  const latest = useRef(call);
  latest.current = call;
  const again = useRef<() => void>(() => undefined);

  useEffect(() => {
    if (key === null) return;
    let timer = 0;
    let ended = false;
    const abort = new AbortController();

    async function fetchNow(): Promise<void> {
      clearTimeout(timer);
      try {
        const data = await latest.current(abort.signal);
        if (!ended) setState({ key, data });
      } catch (error) {
        if (ended || abort.signal.aborted) return;
        const failure = error instanceof ApiError ? error : new ApiError(0, String(error));
        setState((before) => (before.key === key ? { ...before, error: failure } : { key, error: failure }));
      }
      if (!ended && !once) timer = setTimeout(next, refreshInterval.value) as unknown as number;
    }

    function next(): void {
      if (document.hidden || !live.value) {
        timer = setTimeout(next, refreshInterval.value) as unknown as number;
        return;
      }
      void fetchNow();
    }

    function shown(): void {
      if (!document.hidden && !once && live.value) void fetchNow();
    }

    again.current = () => void fetchNow();
    document.addEventListener("visibilitychange", shown);
    void fetchNow();
    return () => {
      ended = true;
      clearTimeout(timer);
      abort.abort();
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, once]);

  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    refresh: () => again.current(),
  };
}
