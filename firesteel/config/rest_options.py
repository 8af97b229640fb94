"""Settings of the REST server, the dashboard, metrics reporters and the history server."""

from __future__ import annotations

from datetime import timedelta

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, DURATION, INT, STRING, whole_number

REST_ENABLED: Option[bool] = Option(
    "rest.enabled",
    BOOLEAN,
    False,
    "Serve REST and dashboard for the jobs of the program. 'firesteel run' sets it to true.",
)
REST_PORT: Option[int] = Option("rest.port", INT, 8081, "The port of the REST interface.")
REST_MASTERS: Option[str | None] = Option(
    "firesteel.rest.masters",
    STRING,
    None,
    "Addresses of further masters of a session, host:port with commas. A client asks them if the "
    "first one does not answer.",
)
REST_BIND_PORT: Option[str] = Option(
    "rest.bind-port",
    STRING,
    "8081",
    "The port or port range to which the REST interface binds.",
)
REST_ADDRESS: Option[str | None] = Option(
    "rest.address", STRING, None, "The address of the REST interface for clients."
)
WEB_REFRESH: Option[timedelta] = Option(
    "web.refresh-interval",
    DURATION,
    timedelta(seconds=3),
    "The refresh interval of the dashboard.",
)
WEB_CHECKPOINT_HISTORY: Option[int] = Option(
    "web.checkpoints.history", INT, 10, "The number of checkpoints in the checkpoint history."
)
WEB_EXCEPTION_HISTORY: Option[int] = Option(
    "web.exception-history-size",
    INT,
    16,
    "The number of exceptions in the exception history.",
)
WEB_HISTORY: Option[int] = Option(
    "web.history",
    whole_number(0),
    5,
    "The number of finished jobs that stay visible.",
)
WEB_CANCEL: Option[bool] = Option(
    "web.cancel.enable",
    BOOLEAN,
    True,
    "Allow cancellation of jobs in the dashboard.",
)
WEB_SUBMIT: Option[bool] = Option(
    "web.submit.enable", BOOLEAN, True, "Allow submission of jobs in the dashboard."
)
METRICS_REPORTERS: Option[str | None] = Option(
    "metrics.reporters", STRING, None, "The names of the metrics reporters."
)
METRICS_FETCHER: Option[timedelta] = Option(
    "metrics.fetcher.update-interval",
    DURATION,
    timedelta(seconds=10),
    "The interval between two updates of the metrics in the dashboard.",
    is_used=False,
)
ARCHIVE_DIR: Option[str | None] = Option(
    "jobmanager.archive.fs.dir",
    STRING,
    None,
    "The directory to which jobs are archived when they end. A session shows them again after its "
    "restart.",
)
HISTORY_ARCHIVE: Option[str | None] = Option(
    "historyserver.archive.fs.dir",
    STRING,
    None,
    "The directory of archived jobs that the history server shows.",
)
HISTORY_REFRESH: Option[timedelta] = Option(
    "historyserver.archive.fs.refresh-interval",
    DURATION,
    timedelta(seconds=10),
    "The interval at which the history server looks for new jobs.",
)
HISTORY_RETAINED: Option[int] = Option(
    "historyserver.archive.retained-jobs",
    whole_number(-1),
    -1,
    "The number of jobs that the history server shows, the newest ones. -1 shows up to 1000.",
)
HISTORY_ADDRESS: Option[str | None] = Option(
    "historyserver.web.address",
    STRING,
    None,
    "The address to which the history server binds. The default is localhost.",
)
HISTORY_PORT: Option[int] = Option(
    "historyserver.web.port", INT, 8082, "The port of the history server."
)
REST_BIND_ADDRESS: Option[str] = Option(
    "rest.bind-address",
    STRING,
    "localhost",
    "The address to which the REST server binds. The default accepts calls from this machine only. "
    "Any other address needs firesteel.rest.token.",
)
REST_ASYNC_STORE: Option[timedelta] = Option(
    "rest.async.store-duration",
    DURATION,
    timedelta(minutes=5),
    "The time for which the result of an asynchronous operation can be asked for.",
)
REST_TOKEN: Option[str | None] = Option(
    "firesteel.rest.token",
    STRING,
    None,
    "The secret that calls which change something have to send, as 'Authorization: Bearer TOKEN'. "
    "Needed if the server listens beyond this machine.",
)
REST_SSL: Option[bool] = Option(
    "security.ssl.rest.enabled", BOOLEAN, False, "Serve REST and dashboard with TLS."
)
REST_SSL_CERTIFICATE: Option[str | None] = Option(
    "firesteel.rest.ssl.certificate",
    STRING,
    None,
    "The file with the certificate of the REST server and its chain, in PEM format. Clients with "
    "this setting trust it.",
)
REST_SSL_KEY: Option[str | None] = Option(
    "firesteel.rest.ssl.key",
    STRING,
    None,
    "The file with the private key of the certificate, in PEM format. The default is the file of "
    "the certificate.",
)
WEB_DIRECTORY: Option[str | None] = Option(
    "firesteel.web.dir",
    STRING,
    None,
    "The directory with the files of the dashboard. The default is Firesteel's own dashboard. The "
    "directory web of flink-dist-2.3.0.jar has Flink's, which works too.",
)
WEB_RESCALE: Option[bool] = Option(
    "web.rescale.enable", BOOLEAN, True, "Allow to change the parallelism in the dashboard."
)
