"""Kafka with TLS, SASL and ACLs: a broker that asks for all of them, without Spark."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, as its manual says
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.kafka.errors import (
    KafkaAuthenticationError,
    KafkaAuthorizationError,
)
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.errors import FiresteelError
from firesteel.testing import JobHarness
from tests.recovery.jobs import RESTARTS
from tests.servers.kafka import KafkaBroker, running_broker
from tests.waiting import wait_until

EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE
MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"
BEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"

SETTINGS = """
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} username="admin" password="admin-secret" \
user_admin="admin-secret" user_ann="ann-secret" user_eve="eve-secret";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram};
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram};
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config={bearer} unsecuredLoginStringClaim_sub="admin";
ssl.keystore.type=PEM
ssl.keystore.location={directory}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/certificate.pem
ssl.client.auth=requested
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
"""


def make_certificate(directory: Path, name: str) -> None:
    """Write ``name.pem``, with a key, and ``certificate.pem``, which signs itself."""
    key, certificate = directory / f"{name}.key", directory / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    (directory / f"{name}.pem").write_text(key.read_text() + certificate.read_text())


class SecureBroker:
    """A broker with TLS, SASL and ACLs. ``ann`` may do what a job needs, and ``eve`` may read."""

    def __init__(self, broker: KafkaBroker, certificate: Path) -> None:
        self.broker = broker
        self.certificate = certificate
        self.source, self.target, self.forbidden = (broker.topic() for _ in range(3))
        self.prefix = f"job-{self.target}"
        broker.write(self.source, map(str, range(20)))
        self._allow("ann", ResourceType.TOPIC, self.source, AclOperation.READ)
        self._allow("ann", ResourceType.TOPIC, self.target, AclOperation.WRITE)
        self._allow("ann", ResourceType.TRANSACTIONAL_ID, self.prefix, AclOperation.WRITE)
        self._allow("eve", ResourceType.TOPIC, self.source, AclOperation.READ)
        self._allow("eve", ResourceType.TOPIC, self.target, AclOperation.WRITE)

    def _allow(self, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        acl = AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for future in self.broker.admin.create_acls([acl]).values():
            future.result()

    def add_scram_user(self, user: str, password: str) -> None:
        changes = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(one, 4096), password.encode())
            for one in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        # Both mechanisms in one call would be two changes of one user.
        for change in changes:
            for future in self.broker.admin.alter_user_scram_credentials([change]).values():
                future.result()

    def properties(self, mechanism: str, jaas: str) -> dict[str, str]:
        """Properties with the names of the Java client."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{jaas};",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificate),
            "default.api.timeout.ms": "20000",
        }

    def login(self, user: str = "ann", password: str = "") -> dict[str, str]:
        password = password or f"{user}-secret"
        return self.properties("PLAIN", f'{PLAIN} username="{user}" password="{password}"')


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    directory = tmp_path_factory.mktemp("secure")
    make_certificate(directory, "broker")
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "admin-secret",
        "ssl.ca.location": str(directory / "certificate.pem"),
    }
    settings = SETTINGS.format(plain=PLAIN, scram=SCRAM, bearer=BEARER, directory=directory)
    with running_broker(
        directory / "broker", protocol="SASL_SSL", settings=settings, properties=client
    ) as broker:
        yield SecureBroker(broker, directory / "certificate.pem")


def source_of(secure: SecureBroker, properties: dict[str, str]) -> KafkaSource:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(secure.broker.servers)
        .set_topics(secure.source)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_properties(properties)
        .build()
    )


def sink_of(
    secure: SecureBroker,
    properties: dict[str, str],
    guarantee: DeliveryGuarantee,
    *,
    topic: str | None = None,
    prefix: str | None = None,
) -> KafkaSink:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic or secure.target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(secure.broker.servers)
    builder.set_record_serializer(schema).set_delivery_guarantee(guarantee)
    if guarantee is EXACTLY_ONCE:
        builder.set_transactional_id_prefix(prefix or secure.prefix)
    for name, value in properties.items():
        builder.set_property(name, value)
    return builder.build()


def copy(secure: SecureBroker, properties: dict[str, str]) -> None:
    """Run a job with a crash from topic to topic. Check that it wrote each record once."""
    before = len(secure.broker.values(secure.target))
    source = source_of(secure, properties)
    sink = sink_of(secure, properties, EXACTLY_ONCE)

    def program(env: Any) -> None:
        env.from_source(source, WatermarkStrategy.no_watermarks(), "source").sink_to(sink)

    harness = JobHarness(program, records_per_epoch=3, checkpoint_every=2, configuration=RESTARTS)
    for _ in range(3):
        harness.run_epoch()
    harness.crash()
    harness.run()
    wait_until(lambda: len(secure.broker.values(secure.target)) >= before + 20)
    written = secure.broker.values(secure.target)[before:]
    assert sorted(written, key=int) == [str(number) for number in range(20)]


def test_a_job_with_tls_a_password_and_acls(secure: SecureBroker) -> None:
    copy(secure, secure.login())


@pytest.mark.slow
def test_wrong_passwords_and_missing_permissions(secure: SecureBroker) -> None:
    """Errors name the cause and the setting."""
    wrong = secure.login(password="guessed")
    with pytest.raises(FiresteelError, match=r"(?s)sasl\.jaas\.config|[Aa]uthenticat"):
        read(secure, wrong)
    for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
        with pytest.raises(KafkaAuthenticationError, match=r"sasl\.jaas\.config"):
            write(sink_of(secure, wrong, guarantee))
    eve = secure.login("eve")
    with pytest.raises(KafkaAuthorizationError, match="transaction"):
        write(sink_of(secure, eve, EXACTLY_ONCE))
    ann = secure.login()
    with pytest.raises(FiresteelError, match=f"{secure.forbidden}.*user"):
        write(
            sink_of(secure, {**ann, "max.block.ms": "2000"}, AT_LEAST_ONCE, topic=secure.forbidden)
        )


def read(secure: SecureBroker, properties: dict[str, str]) -> None:
    source = source_of(secure, {**properties, "default.api.timeout.ms": "3000"})
    JobHarness(lambda env: env.from_source(source, WatermarkStrategy.no_watermarks(), "s")).run()


def write(sink: KafkaSink) -> None:
    JobHarness(lambda env: env.from_collection(["a"], Types.STRING()).sink_to(sink)).run()


def test_a_certificate_that_is_not_trusted(secure: SecureBroker, tmp_path: Path) -> None:
    make_certificate(tmp_path, "other")
    other = {
        **secure.login(),
        "ssl.truststore.location": str(tmp_path / "certificate.pem"),
        "max.block.ms": "3000",
    }
    with pytest.raises(KafkaAuthenticationError, match=r"ssl\.truststore\.location"):
        write(sink_of(secure, other, EXACTLY_ONCE))
    with pytest.raises(KafkaAuthenticationError, match=r"ssl\.truststore\.location"):
        write(sink_of(secure, other, AT_LEAST_ONCE))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(secure: SecureBroker, mechanism: str) -> None:
    secure.add_scram_user("ann", "a=b,c")
    jaas = f'{SCRAM} username="ann" password="a=b,c"'
    copy(secure, secure.properties(mechanism, jaas))
    wrong = secure.properties(mechanism, f'{SCRAM} username="ann" password="guessed"')
    for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
        with pytest.raises(KafkaAuthenticationError, match=r"sasl\.jaas\.config"):
            write(sink_of(secure, wrong, guarantee))


@pytest.mark.slow
def test_tokens_without_a_signature(secure: SecureBroker) -> None:
    jaas = f'{BEARER} unsecuredLoginStringClaim_sub="ann"'
    copy(secure, secure.properties("OAUTHBEARER", jaas))


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives tokens to the client ``ann`` with the secret ``ann-secret``."""

    def do_POST(self) -> None:
        expected = base64.b64encode(b"ann:ann-secret").decode()
        is_ann = self.headers.get("Authorization") == f"Basic {expected}"
        now = int(time.time())
        claims = {"sub": "ann", "iat": now, "exp": now + 3600}
        parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
        token = ".".join(base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in parts)
        body = {"access_token": f"{token}.", "token_type": "bearer", "expires_in": 3600}
        data = json.dumps(body if is_ann else {"error": "invalid_client"}).encode()
        self.send_response(200 if is_ann else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not write to standard error."""


@pytest.mark.slow
def test_tokens_of_an_identity_provider(secure: SecureBroker) -> None:
    server = HTTPServer(("127.0.0.1", 0), TokenEndpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:

        def properties(secret: str) -> dict[str, str]:
            jaas = f'{BEARER} clientId="ann" clientSecret="{secret}"'
            url = f"http://127.0.0.1:{server.server_port}/token"
            return {
                **secure.properties("OAUTHBEARER", jaas),
                "sasl.oauthbearer.token.endpoint.url": url,
            }

        copy(secure, properties("ann-secret"))
        with pytest.raises(KafkaAuthenticationError, match=r"sasl\.oauthbearer\.token\.endpoint"):
            write(sink_of(secure, properties("guessed"), EXACTLY_ONCE))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
