// Light or dark: as the system says, until the user chooses.
import { Store, storedText } from "./store";

const chosen = storedText(() => localStorage, "firesteel-theme");
const system = matchMedia("(prefers-color-scheme: dark)");

export type Theme = "light" | "dark";

export const theme = new Store<Theme>(current());

function current(): Theme {
  if (chosen.value === "light" || chosen.value === "dark") return chosen.value;
  return system.matches ? "dark" : "light";
}

function apply(): void {
  theme.set(current());
  document.documentElement.dataset["theme"] = theme.value;
}

export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
}

export function toggleTheme(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  chosen.set(next === (system.matches ? "dark" : "light") ? "" : next);
  apply();
}

/** The value of a color of the style sheet, for canvases. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
