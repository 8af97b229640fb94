// The configuration of a job.
import { usePoll } from "../../api/poll";
import type { JobConfig } from "../../api/types";
import { Card, Facts, Waiting } from "../../components/basics";
import { Settings } from "../job-manager";

export function ConfigurationPage({ jid }: { jid: string }) {
  const { data, error } = usePoll<JobConfig>(`/jobs/${jid}/config`, { once: true });
  if (!data) return <Waiting error={error} />;
  const config = data["execution-config"];
  const user = Object.entries(config["user-config"] ?? {}).map(([key, value]) => ({ key, value }));
  return (
    <>
      <Card title="Execution">
        <Facts
          rows={[
            ["Restart strategy", config["restart-strategy"]],
            ["Parallelism", String(config["job-parallelism"])],
            ["Object reuse", config["object-reuse-mode"] ? "on" : "off"],
          ]}
        />
      </Card>
      <Card flush title="Parameters of the job">
        <Settings settings={user} />
      </Card>
    </>
  );
}
