// A value that components can watch.
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  private watchers = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const watcher of this.watchers) watcher();
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useEffect(() => store.watch(() => redraw((count) => count + 1)), [store]);
  return store.value;
}

/** A text in the storage of the browser. Private windows may refuse to store; then it lasts as long as the page. */
export function storedText(storage: () => Storage, key: string): Store<string> {
  let initial = "";
  try {
    initial = storage().getItem(key) ?? "";
  } catch {
    // The browser forbids storage.
  }
  const store = new Store(initial);
  store.watch(() => {
    try {
      if (store.value) storage().setItem(key, store.value);
      else storage().removeItem(key);
    } catch {
      // The browser forbids storage.
    }
  });
  return store;
}
