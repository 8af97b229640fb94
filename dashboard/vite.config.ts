// Builds the dashboard into the Python package. `make dashboard` runs this and records the hashes.
import { defineConfig } from "vite";

// The server that answers the REST calls of `npm run dev`.
const api = "http://127.0.0.1:8081";
const paths = ["config", "overview", "jobs", "taskmanagers", "jobmanager", "applications", "savepoint-disposal"];

export default defineConfig({
  // Relative addresses: the dashboard also works below a prefix of a reverse proxy.
  base: "./",
  build: {
    outDir: "../firesteel/dashboard/static",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(paths.map((path) => [`/${path}`, api])),
  },
});
