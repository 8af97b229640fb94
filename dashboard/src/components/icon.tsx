// Line icons on a grid of 24 units.

const PATHS = {
  overview: "M4 5h7v6H4zM13 5h7v9h-7zM4 13h7v6H4zM13 16h7v3h-7z",
  jobs: "M5 6.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0M15 12a2 2 0 1 0 4 0a2 2 0 1 0-4 0M5 17.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0M9 6.500h2.500q1.500 0 1.500 1.500v2q0 2 2 2M9 17.500h2.500q1.500 0 1.500-1.500v-2q0-2 2-2",
  workers: "M4 5h16v6H4zM4 13h16v6H4zM7.500 8h.01M7.500 16h.01M11 8h6M11 16h6",
  driver: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  submit: "M12 15V4M8 8l4-4 4 4M4 15v4h16v-4",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M5 19l1.400-1.400M17.600 6.400L19 5",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  check: "M5 12.500l4.500 4.500L19 7",
  alert: "M12 4l9 16H3zM12 10v4M12 17h.01",
  info: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 11v5M12 8h.01",
  key: "M4 15a4 4 0 1 0 8 0a4 4 0 1 0-8 0M11 12l8-8M16 7l3 3",
  search: "M4 10.500a6.500 6.500 0 1 0 13 0a6.500 6.500 0 1 0-13 0M15.500 15.500L20 20",
  refresh: "M20 11a8 8 0 0 0-14.500-4L4 9M4 4v5h5M4 13a8 8 0 0 0 14.500 4L20 15M20 20v-5h-5",
  stop: "M6 6h12v12H6z",
  scale: "M4 20V10M10 20V4M16 20v-7M22 20v-4",
  save: "M5 4h11l3 3v13H5zM9 4v5h6V4M8 20v-6h8v6",
  flame: "M12 3c1 4 5 5.500 5 10a5 5 0 0 1-10 0c0-2 1-3 2-4 0 2 1 3 2 3 1-2-1-5 1-9z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
