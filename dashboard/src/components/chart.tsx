// A line chart over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { moment } from "../lib/format";
import { useStore } from "../lib/store";
import { color, theme } from "../lib/theme";

export interface Line {
  label: string;
  /** The name of a color of the style sheet. */
  color: string;
  values: number[];
}

const HEIGHT = 150;
// The span of a chart with one sample.
const FIRST_SECONDS = 10;
export const LINE_COLORS = ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6", "line-7", "line-8"];

export function Chart({ title, times, lines, format }: {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const current = useStore(theme);
  const names = lines.map((line) => `${line.label}:${line.color}`).join("|");

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const chart = new uPlot(options(lines, format, element.clientWidth), toData(times, lines), element);
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = null;
    };
    // The chart is made again for other lines or another theme; new values are set below.
  }, [names, current]);

  useEffect(() => {
    plot.current?.setData(toData(times, lines));
  }, [times.length, times.at(-1), names]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {lines.map((line) => (
            <span key={line.label}>
              <i style={{ background: `var(--${line.color})` }} />
              {line.label}
              <b>{format(line.values.at(-1) ?? NaN)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} class="chart-place" role="img" aria-label={`${title} over time`} />
    </figure>
  );
}

function toData(times: number[], lines: Line[]): uPlot.AlignedData {
  const clean = (values: number[]) => values.map((value) => (Number.isFinite(value) ? value : null));
  return [times.map((time) => time / 1000), ...lines.map((line) => clean(line.values))] as uPlot.AlignedData;
}

function options(lines: Line[], format: (value: number) => string, width: number): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: color("muted"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
    font: "11px Inter, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: {
      // A single sample has a time, but no span of time.
      x: { range: (_plot, min, max) => (max > min ? [min, max] : [(max ?? 0) - FIRST_SECONDS, max ?? 0]) },
      y: { range: (_plot, min, max) => [Math.min(0, min ?? 0), max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { ...axis, space: 80, size: 26, values: (_plot, ticks) => ticks.map((tick) => moment(tick * 1000)) },
      { ...axis, size: 62, values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 1.75,
        points: { show: (plot: uPlot) => plot.data[0].length === 1, size: 6, fill: color(line.color) },
        spanGaps: true,
      })),
    ],
  };
}

/** A small line without axes. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const known = values.filter(Number.isFinite).slice(-60);
  if (known.length < 2) return <span class="sparkline" />;
  const top = Math.max(...known) || 1;
  const points = known.map((value, index) => `${(100 * index) / (known.length - 1)},${23 - (21 * value) / top}`).join(" ");
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon points={`0,24 ${points} 100,24`} />
      <polyline points={points} />
    </svg>
  );
}
