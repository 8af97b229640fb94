// The entry point of the dashboard.
import { render } from "preact";
import { App } from "./app";
import { startTheme } from "./lib/theme";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/components.css";
import "./styles/job.css";

startTheme();
render(<App />, document.getElementById("app") as HTMLElement);
