// Messages about actions, in a corner of the page.
import type { ComponentChildren } from "preact";
import { Store, useStore } from "../lib/store";
import { Icon } from "./icon";

interface Toast {
  id: number;
  tone: string;
  content: ComponentChildren;
}

const toasts = new Store<Toast[]>([]);
let last = 0;
const LIFETIME = 12_000;
const MOST = 4;

export function toast(tone: "good" | "bad" | "warn", content: ComponentChildren): void {
  const id = ++last;
  toasts.set([...toasts.value, { id, tone, content }].slice(-MOST));
  if (tone !== "bad") setTimeout(() => dismiss(id), LIFETIME);
}

function dismiss(id: number): void {
  toasts.set(toasts.value.filter((one) => one.id !== id));
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(toasts).map((one) => (
        <div key={one.id} class={`toast tone-${one.tone}`}>
          <Icon name={one.tone === "good" ? "check" : "alert"} />
          <div>{one.content}</div>
          <button type="button" class="icon-button" onClick={() => dismiss(one.id)} aria-label="Dismiss">
            <Icon name="close" size={15} />
          </button>
        </div>
      ))}
    </div>
  );
}
