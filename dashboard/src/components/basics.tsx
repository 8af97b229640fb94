// Small parts of all pages: cards, badges, bars, empty states, code.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { fullMoment, moment, percent } from "../lib/format";
import { Icon, type IconName } from "./icon";

export function Card({ title, aside, children, flush }: {
  title?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
  flush?: boolean;
}) {
  return (
    <section class={`card ${flush ? "card-flush" : ""}`}>
      {(title || aside) && (
        <header class="card-head">
          <h2>{title}</h2>
          {aside && <div class="card-aside">{aside}</div>}
        </header>
      )}
      <div class="card-body">{children}</div>
    </section>
  );
}

export function Stat({ label, value, note, tone, href }: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: string;
  /** The page that the whole card leads to. */
  href?: string;
}) {
  const content = (
    <>
      <div class="stat-label">{label}</div>
      <div class={`stat-value ${tone ? `tone-${tone}` : ""}`}>{value}</div>
      {note !== undefined && <div class="stat-note">{note}</div>}
    </>
  );
  return href ? (
    <a class="stat" href={href}>
      {content}
    </a>
  ) : (
    <div class="stat">{content}</div>
  );
}

const TONES: Record<string, string> = {
  RUNNING: "good",
  FINISHED: "calm",
  COMPLETED: "good",
  FAILED: "bad",
  FAILING: "bad",
  RESTARTING: "warn",
  CANCELLING: "warn",
  CANCELING: "warn",
  CREATED: "warn",
  INITIALIZING: "warn",
  SCHEDULED: "warn",
  DEPLOYING: "warn",
  IN_PROGRESS: "warn",
  HIGH: "bad",
  LOW: "warn",
  OK: "good",
};

export function Status({ state }: { state: string }) {
  const tone = TONES[state.toUpperCase()] ?? "mute";
  return (
    <span class={`status tone-${tone}`}>
      <i />
      {sentenceCase(state)}
    </span>
  );
}

function sentenceCase(state: string): string {
  const words = state.replaceAll("_", " ").toLowerCase();
  return words === "ok" ? "OK" : words.charAt(0).toUpperCase() + words.slice(1);
}

export function Moment({ at }: { at: number | null | undefined }) {
  return <time title={fullMoment(at)}>{moment(at)}</time>;
}

/** Shares of busy, back-pressured and idle time. */
export function LoadBar({ busy, backPressured }: { busy: number; backPressured: number }) {
  const known = Number.isFinite(busy) || Number.isFinite(backPressured);
  const title = known ? `busy ${percent(busy)}, back-pressured ${percent(backPressured)}` : "load not known yet";
  return (
    <span class="load-bar" role="img" aria-label={title} title={title}>
      <span class="load-busy" style={{ width: `${100 * (busy || 0)}%` }} />
      <span class="load-pressed" style={{ width: `${100 * (backPressured || 0)}%` }} />
    </span>
  );
}

export function Meter({ ratio, tone = "accent", label }: { ratio: number; tone?: string; label?: string }) {
  return (
    <span class="meter" role="img" aria-label={label ?? percent(ratio)} title={label}>
      <span class={`meter-${tone}`} style={{ width: `${Math.min(100, 100 * (ratio || 0))}%` }} />
    </span>
  );
}

export function Empty({ icon = "info", title, children }: {
  icon?: IconName;
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={26} />
      </span>
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** The place of data that has not arrived: a failure, or lines that shimmer. */
export function Waiting({ error, lines = 3 }: { error: ApiError | undefined; lines?: number }) {
  if (error) return <Failed error={error} />;
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

export function Failed({ error }: { error: ApiError }) {
  return (
    <div class="banner tone-bad" role="alert">
      <Icon name="alert" />
      <div class="pre-line">{error.message}</div>
    </div>
  );
}

export function Banner({ tone, icon = "info", children }: { tone: string; icon?: IconName; children: ComponentChildren }) {
  return (
    <div class={`banner tone-${tone}`}>
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return; // Pages without TLS have no clipboard beyond loopback.
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  }
  return (
    <button type="button" class="icon-button" onClick={() => void copy()} title={label} aria-label={label}>
      <Icon name={done ? "check" : "copy"} size={16} />
    </button>
  );
}

export function CommandLine({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  );
}

export function Tabs({ items, current }: { items: { id: string; label: string; href: string; note?: string | undefined }[]; current: string }) {
  return (
    <nav class="tabs">
      {items.map((item) => (
        <a key={item.id} href={item.href} aria-current={item.id === current ? "page" : undefined}>
          {item.label}
          {item.note && <span class="tab-note">{item.note}</span>}
        </a>
      ))}
    </nav>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
