"""RabbitMQ for tests: a node in a temporary directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from firesteel.connectors.rabbitmq.connection_config import RMQClient, RMQConnectionError
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig
from tests.servers import leash
from tests.servers.ports import free_ports

# A machine that runs many tests at once may need minutes.
_START_SECONDS = 240
_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


def why_not() -> str | None:
    """Return the reason for which a server cannot start, or None if it can."""
    if not _SCRIPT.exists():
        return "RabbitMQ is not installed (Debian: apt install rabbitmq-server)"
    return None


@contextmanager
def running_rabbitmq() -> Iterator[RabbitServer]:
    """A server that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    server = RabbitServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


class RabbitServer:
    """A node, which can be killed and started again. It keeps durable queues."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="rabbitmq-"))
        self.port, distribution, mapper = free_ports(3)
        config = self._directory / "rabbitmq.conf"
        config.write_text(f"listeners.tcp.default = 127.0.0.1:{self.port}\n")
        (self._directory / "plugins").write_text("[].\n")
        self._environment = {
            **os.environ,
            "HOME": str(self._directory),
            "RABBITMQ_NODENAME": f"tests-{uuid.uuid4().hex[:8]}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_MNESIA_BASE": str(self._directory / "data"),
            "RABBITMQ_LOG_BASE": str(self._directory / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._directory / "plugins"),
            "RABBITMQ_DIST_PORT": str(distribution),
            # A mapper of its own, which ends with the server.
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def config(self, **settings: Any) -> RMQConnectionConfig:
        builder = RMQConnectionConfig.Builder().set_uri(self.uri)
        builder.set_network_recovery_interval(100)
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    def start(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        process = self._launch()
        while not self._answers():
            text = (self._directory / "output").read_text()[-3000:]
            assert time.monotonic() < deadline, text
            if process.poll() is not None:
                # A node that was killed may still hold the port.
                assert "eaddrinuse" in text, text
                self.kill()
                process = self._launch()
            time.sleep(0.1)

    def _launch(self) -> subprocess.Popen[bytes]:
        with (self._directory / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, leash.__file__, str(_SCRIPT)],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return self._process

    def kill(self) -> None:
        """Kill the processes of the node, as a failure of the machine would."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
        assert process.stdin is not None
        process.stdin.close()
        for file in self._directory.rglob("*.pid"):
            file.unlink()

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        # The mapper of Erlang leaves the session of its server.
        epmd = shutil.which("epmd")
        if epmd is not None:
            subprocess.run(
                [epmd, "-port", self._environment["ERL_EPMD_PORT"], "-kill"],
                capture_output=True,
                check=False,
                env={**self._environment, "ERL_EPMD_RELAXED_COMMAND_CHECK": "true"},
            )
        shutil.rmtree(self._directory, ignore_errors=True)

    # Queues

    def queue(self) -> str:
        """A new queue."""
        name = f"queue-{uuid.uuid4().hex[:8]}"
        with self._channel() as channel:
            channel.queue_declare(name, durable=True)
        return name

    def publish(self, queue: str, texts: Any, *, with_ids: bool = True) -> None:
        import pika

        with self._channel() as channel:
            channel.confirm_delivery()
            for text in texts:
                properties = pika.BasicProperties(
                    correlation_id=str(text) if with_ids else None, delivery_mode=2
                )
                channel.basic_publish("", queue, str(text).encode(), properties)

    def drain(self, queue: str) -> list[str]:
        """Take all messages that are ready."""
        found: list[str] = []
        with self._channel() as channel:
            while True:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return found
                found.append(body.decode())

    def ready(self, queue: str) -> int:
        """The number of messages that are ready."""
        with self._channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        connection = RMQClient(self.config()).connect()
        try:
            yield connection.channel()
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            RMQClient(self.config()).connect().close()
        except RMQConnectionError:
            return False
        return True


if __name__ == "__main__":
    sys.exit(why_not())
