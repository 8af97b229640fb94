// Submitting a job: programs that are uploaded, and the commands for this server.
import { useState } from "preact/hooks";
import { send } from "../api/client";
import { usePoll } from "../api/poll";
import type { Program } from "../api/types";
import { Card, CommandLine, Empty, Moment, Waiting } from "../components/basics";
import { ActionDialog } from "../components/dialog";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { go } from "../lib/router";
import { shellWords } from "../lib/words";

export function SubmitPage() {
  const address = location.host;
  return (
    <>
      <div class="page-head">
        <h1>Submit a job</h1>
      </div>
      <Programs />
      <Card title="From the command line">
        <p>
          The program runs on your machine up to <code>execute</code>, which sends the job to this session. Its graph, functions,
          files and requirements travel with it.
        </p>
        <CommandLine text={`firesteel run -m ${address} -d job.py`} />
        <p>Start a job from a savepoint, with a different parallelism and a setting:</p>
        <CommandLine text={`firesteel run -m ${address} -d -s /savepoints/savepoint-1 -p 4 -Dexecution.checkpointing.interval=10s job.py`} />
        <p class="muted">
          Without <code>-d</code> the command waits for the end of the job. The lines of <code>print()</code> are on the page
          Output of the job.
        </p>
      </Card>
      <Card title="From a terminal, afterwards">
        <p>Everything that this dashboard does is also a command:</p>
        <CommandLine text={`firesteel list -m ${address}`} />
        <CommandLine text={`firesteel stop -m ${address} --savepointPath /savepoints <job id>`} />
        <CommandLine text={`firesteel cancel -m ${address} <job id>`} />
      </Card>
    </>
  );
}

type Asking = { action: "upload" } | { action: "run" | "delete"; program: Program };

/** Programs on the machine of the session. Their main part runs there, too. */
function Programs() {
  const { data, error, refresh } = usePoll<{ files: Program[] }>("/jars");
  const [asking, setAsking] = useState<Asking>();
  const props = {
    onDone: refresh,
    onClose: () => setAsking(undefined),
  };
  return (
    <Card
      flush
      title="Uploaded programs"
      aside={
        <button type="button" class="button small" onClick={() => setAsking({ action: "upload" })}>
          Upload
        </button>
      }
    >
      {!data ? (
        <Waiting error={error} />
      ) : data.files.length === 0 ? (
        <Empty icon="submit" title="No program yet">
          <p>
            Upload a Python file. It runs on the machine of the session up to <code>execute</code>.
          </p>
        </Empty>
      ) : (
        <Table
          label="Uploaded programs"
          rows={data.files}
          id={(program) => program.id}
          columns={[
            { title: "Program", main: true, cell: (program) => program.name },
            { title: "Uploaded", cell: (program) => <Moment at={program.uploaded} /> },
            {
              title: "Actions",
              cell: (program) => (
                <span class="row-actions">
                  <button type="button" class="button small primary" onClick={() => setAsking({ action: "run", program })}>
                    Run
                  </button>
                  <button type="button" class="button small" onClick={() => setAsking({ action: "delete", program })}>
                    Delete
                  </button>
                </span>
              ),
            },
          ]}
        />
      )}
      {asking?.action === "upload" && <Upload {...props} />}
      {asking?.action === "run" && <Run program={asking.program} {...props} />}
      {asking?.action === "delete" && <Delete program={asking.program} {...props} />}
    </Card>
  );
}

interface ActionProps {
  onDone: () => void;
  onClose: () => void;
}

function Upload({ onDone, onClose }: ActionProps) {
  const [file, setFile] = useState<File>();
  async function upload(): Promise<void> {
    if (!file) throw new Error("Choose a file.");
    const form = new FormData();
    form.append("jarfile", file);
    await send("POST", "/jars/upload", form);
    toast("good", `${file.name} is uploaded.`);
    onDone();
  }
  return (
    <ActionDialog title="Upload a program" label="Upload" act={upload} onClose={onClose}>
      <label class="field">
        <span>Python file</span>
        <input type="file" accept=".py" onChange={(event) => setFile(event.currentTarget.files?.[0])} />
      </label>
      <TokenHint />
    </ActionDialog>
  );
}

function TokenHint() {
  return (
    <p class="muted">
      Code needs the token of the session, which <code>firesteel session list --token</code> prints.
    </p>
  );
}

function Run({ program, onClose }: ActionProps & { program: Program }) {
  const [words, setWords] = useState("");
  const [parallelism, setParallelism] = useState("");
  const [savepoint, setSavepoint] = useState("");
  const [allowLost, setAllowLost] = useState(false);
  async function run(): Promise<void> {
    const { jobid } = await send<{ jobid: string }>("POST", `/jars/${encodeURIComponent(program.id)}/run`, {
      programArgsList: shellWords(words),
      parallelism: parallelism === "" ? null : Number(parallelism),
      savepointPath: savepoint || null,
      allowNonRestoredState: allowLost,
    });
    toast("good", `${program.name} has submitted a job.`);
    go("job", jobid);
  }
  return (
    <ActionDialog title={`Run ${program.name}`} label="Run" act={run} onClose={onClose}>
      <label class="field">
        <span>Arguments</span>
        <input type="text" value={words} onInput={(event) => setWords(event.currentTarget.value)} placeholder="--input /data" />
      </label>
      <label class="field">
        <span>Parallelism</span>
        <input type="number" min="1" value={parallelism} onInput={(event) => setParallelism(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>Savepoint</span>
        <input type="text" value={savepoint} onInput={(event) => setSavepoint(event.currentTarget.value)} placeholder="/savepoints/savepoint-1" />
        <small>Empty means an empty state.</small>
      </label>
      <label class="check">
        <input type="checkbox" checked={allowLost} onChange={(event) => setAllowLost(event.currentTarget.checked)} />
        Start even if the program lacks an operator whose state is in the savepoint.
      </label>
    </ActionDialog>
  );
}

function Delete({ program, onDone, onClose }: ActionProps & { program: Program }) {
  async function remove(): Promise<void> {
    await send("DELETE", `/jars/${encodeURIComponent(program.id)}`);
    onDone();
  }
  return (
    <ActionDialog title={`Delete ${program.name}?`} label="Delete" danger act={remove} onClose={onClose}>
      <p>Jobs that it has submitted continue.</p>
    </ActionDialog>
  );
}
