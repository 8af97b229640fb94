// The parts of a failure's text: the user's traceback, the record, and the sentence of Firesteel.

export interface Failure {
  /** Class and message of the error. */
  title: string;
  /** The traceback, line by line. `own` marks frames of the user's files. */
  lines: { text: string; own: boolean }[];
  /** The record that the function was called with. */
  record: string | null;
  /** Sentences after the traceback. */
  explanation: string;
}

const FRAME = /^\s*File "([^"]+)", line \d+/;
const FOREIGN = /\/(?:site-packages|dist-packages|firesteel|pyspark|lib\/python3[^/]*)\/|^<frozen/;
const RECORD = / on the record ([\s\S]*), which raised the error above\./;

export function parseFailure(name: string, text: string): Failure {
  const { traceback, explanation } = split(text.trimEnd());
  const lines: Failure["lines"] = [];
  let own = false;
  for (const line of traceback.split("\n")) {
    const frame = FRAME.exec(line);
    if (frame) own = !FOREIGN.test(frame[1] ?? "");
    else if (!line.startsWith("    ")) own = false;
    lines.push({ text: line, own });
  }
  return { title: title(name, traceback), lines, record: RECORD.exec(explanation)?.[1] ?? null, explanation };
}

function split(text: string): { traceback: string; explanation: string } {
  const at = text.lastIndexOf("\n\n");
  const last = at < 0 ? "" : text.slice(at + 2);
  if (at < 0 || !/which raised the error above\.\s*$/.test(last)) return { traceback: text, explanation: "" };
  return { traceback: text.slice(0, at), explanation: last };
}

/** The last line of a Python traceback that is not indented, or the first line of another text. */
function title(name: string, traceback: string): string {
  const lines = traceback.split("\n");
  if (!lines.some((line) => line.startsWith("Traceback"))) return lines[0] || name;
  return lines.findLast((line) => /^[A-Za-z_][\w.]*(?::|$)/.test(line)) ?? name;
}
