// Submitting a job: the commands for this server.
import { Card, CommandLine } from "../components/basics";

export function SubmitPage() {
  const address = location.host;
  return (
    <>
      <div class="page-head">
        <h1>Submit a job</h1>
      </div>
      <Card title="From the command line">
        <p>
          The program runs on your machine up to <code>execute</code>, which sends the job to this session. Its graph, functions,
          files and requirements travel with it.
        </p>
        <CommandLine text={`firesteel run -m ${address} -d job.py`} />
        <p>Start a job from a savepoint, with a different parallelism and a setting:</p>
        <CommandLine text={`firesteel run -m ${address} -d -s /savepoints/savepoint-1 -p 4 -Dexecution.checkpointing.interval=10s job.py`} />
        <p class="muted">
          Without <code>-d</code> the command follows the job and prints its results.
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
