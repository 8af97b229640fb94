// The frame of all pages: navigation, state of the connection, and the page of the route.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connected, token } from "./api/client";
import { live, refreshInterval, usePoll } from "./api/poll";
import type { DashboardConfig } from "./api/types";
import { Dialog, TokenField } from "./components/dialog";
import { Icon, type IconName } from "./components/icon";
import { Toasts } from "./components/toasts";
import { useStore } from "./lib/store";
import { link, useRoute } from "./lib/router";
import { theme, toggleTheme } from "./lib/theme";
import { Empty, Waiting } from "./components/basics";
import { JobManagerPage } from "./pages/job-manager";
import { JobPage } from "./pages/job/job";
import { JobsPage } from "./pages/jobs";
import { OverviewPage } from "./pages/overview";
import { SubmitPage } from "./pages/submit";
import { TaskManagerPage, TaskManagersPage } from "./pages/task-managers";

const PAGES: { id: string; label: string; icon: IconName; also?: string; only?: "cluster" | "session" }[] = [
  { id: "overview", label: "Overview", icon: "overview" },
  { id: "jobs", label: "Jobs", icon: "jobs", also: "job" },
  { id: "task-managers", label: "Task managers", icon: "workers", only: "cluster" },
  { id: "job-manager", label: "Job manager", icon: "driver", only: "cluster" },
  { id: "submit", label: "Submit a job", icon: "submit", only: "session" },
];

export function App() {
  const { data: config, error } = usePoll<DashboardConfig>("/config", { once: true });
  const route = useRoute();
  useEffect(() => {
    if (config) refreshInterval.set(config["refresh-interval"] || 3000);
  }, [config]);
  useEffect(() => scrollTo(0, 0), [route[0], route[1], route[2]]);

  const page = route[0] ?? "overview";
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <Sidebar page={page} config={config} />
      <main id="content" class="content" tabIndex={-1}>
        {config ? <Page route={route} config={config} /> : <Starting error={error?.message} />}
      </main>
      <Toasts />
    </div>
  );
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Starting({ error }: { error: string | undefined }) {
  if (error === undefined) return <Waiting error={undefined} lines={5} />;
  return (
    <Empty icon="alert" title="No answer from the server">
      <p>{error}</p>
      <button type="button" class="button primary" onClick={() => location.reload()}>
        Try again
      </button>
    </Empty>
  );
}

function Page({ route, config }: { route: string[]; config: DashboardConfig }): ComponentChildren {
  const [page = "overview", id, part, ...rest] = route;
  switch (page) {
    case "overview":
      return <OverviewPage history={config.features["web-history"]} />;
    case "jobs":
      return <JobsPage state={id ?? "all"} />;
    case "job":
      return id ? <JobPage key={id} jid={id} part={part ?? "overview"} rest={rest} config={config} /> : <JobsPage state="all" />;
    case "task-managers":
      return id ? <TaskManagerPage key={id} id={id} part={part ?? "metrics"} rest={rest} /> : <TaskManagersPage />;
    case "job-manager":
      return <JobManagerPage part={id ?? "configuration"} file={part} />;
    case "submit":
      return <SubmitPage />;
    default:
      return (
        <Empty icon="search" title="There is no such page">
          <a class="button" href={link("overview")}>
            Go to the overview
          </a>
        </Empty>
      );
  }
}

function Sidebar({ page, config }: { page: string; config: DashboardConfig | undefined }) {
  const history = config?.features["web-history"] ?? false;
  const submits = config?.features["web-submit"] ?? false;
  const version = config?.["firesteel-version"] ?? config?.["flink-version"];
  return (
    <header class="sidebar">
      <a class="brand" href={link("overview")}>
        <img src="./favicon.svg" alt="" width="26" height="26" />
        <span>Firesteel</span>
      </a>
      <nav class="main-nav" aria-label="Pages">
        {PAGES.filter((one) => !(history && one.only) && (submits || one.only !== "session")).map((one) => (
          <a
            key={one.id}
            href={link(one.id)}
            aria-current={one.id === page || one.also === page ? "page" : undefined}
            title={one.label}
          >
            <Icon name={one.icon} size={20} />
            <span>{one.label}</span>
          </a>
        ))}
      </nav>
      <Controls />
      <div class="version">
        {history ? "History server" : "Session"}
        {version && <span title={config?.["flink-revision"]}>Version {version}</span>}
      </div>
    </header>
  );
}

function Controls() {
  const online = useStore(connected);
  const updating = useStore(live);
  const current = useStore(theme);
  const [asking, setAsking] = useState(false);
  const hasToken = useStore(token) !== "";
  return (
    <div class="controls">
      <span class={`connection ${online ? (updating ? "on" : "paused") : "off"}`} role="status">
        <i />
        {online ? (updating ? "Live" : "Paused") : "Offline"}
      </span>
      <button
        type="button"
        class="icon-button"
        onClick={() => live.set(!updating)}
        aria-label={updating ? "Pause the updates" : "Continue the updates"}
        title={updating ? "Pause the updates" : "Continue the updates"}
      >
        <Icon name={updating ? "pause" : "play"} />
      </button>
      <button
        type="button"
        class="icon-button"
        onClick={toggleTheme}
        aria-label={current === "dark" ? "Light colors" : "Dark colors"}
        title={current === "dark" ? "Light colors" : "Dark colors"}
      >
        <Icon name={current === "dark" ? "sun" : "moon"} />
      </button>
      <button
        type="button"
        class={`icon-button ${hasToken ? "active" : ""}`}
        onClick={() => setAsking(true)}
        aria-label="Set the token"
        title="Set the token"
      >
        <Icon name="key" />
      </button>
      {asking && (
        <Dialog title="Token" onClose={() => setAsking(false)}>
          <div class="dialog-body">
            <TokenField />
          </div>
          <footer>
            <button type="button" class="button primary" onClick={() => setAsking(false)}>
              Done
            </button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}
