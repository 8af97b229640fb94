"""Properties of Kafka's Java client, translated for librdkafka.

Most names are the same, and some differ. Names without a meaning here are logged. Names of Java
classes and files are errors. Names of librdkafka are accepted, too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches

from firesteel.errors import ConfigurationError

__all__ = ["KNOWN_NAMES", "admin_properties", "check_properties", "translate"]

_LOG = logging.getLogger(__name__)

_SAME = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset bootstrap.servers check.crcs
    client.dns.lookup client.id client.rack connections.max.idle.ms enable.auto.commit
    enable.metrics.push fetch.max.bytes fetch.min.bytes group.id heartbeat.interval.ms isolation.level
    max.partition.fetch.bytes max.poll.interval.ms metadata.max.age.ms metadata.recovery.strategy
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
    sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url security.protocol session.timeout.ms
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.endpoint.identification.algorithm
    ssl.key.password ssl.keystore.location ssl.keystore.password
"""

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}

_ASSIGNED = "partitions are assigned by Firesteel, not by a consumer group"
_JVM = "it configures the internals of the Java client"
_MEANINGLESS = {
    "auto.include.jmx.reporter": _JVM,
    "exclude.internal.topics": "Firesteel never reads Kafka's internal topics",
    "group.instance.id": _ASSIGNED,
    "group.protocol": _ASSIGNED,
    "group.remote.assignor": _ASSIGNED,
    "key.deserializer": "set_value_only_deserializer sets the schema",
    "max.poll.records": "Firesteel reads as many records as an epoch can process",
    "metrics.num.samples": _JVM,
    "metrics.recording.level": _JVM,
    "metrics.sample.window.ms": _JVM,
    "partition.assignment.strategy": _ASSIGNED,
    "register.consumer.metrics": "Firesteel has no metrics of the Kafka client in this version",
    "sasl.login.refresh.buffer.seconds": _JVM,
    "sasl.login.refresh.min.period.seconds": _JVM,
    "sasl.login.refresh.window.factor": _JVM,
    "sasl.login.refresh.window.jitter": _JVM,
    "socket.connection.setup.timeout.max.ms": "the client uses socket.connection.setup.timeout.ms",
    "ssl.enabled.protocols": "OpenSSL chooses the protocol",
    "ssl.keymanager.algorithm": _JVM,
    "ssl.protocol": "OpenSSL chooses the protocol",
    "ssl.provider": _JVM,
    "ssl.secure.random.implementation": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
    "value.deserializer": "set_value_only_deserializer sets the schema",
}

_CLASS = "it names a Java class, which Firesteel's client cannot load; remove the property"
_REFUSED = {
    "interceptor.classes": _CLASS,
    "metric.reporters": _CLASS,
    "sasl.client.callback.handler.class": _CLASS,
    "sasl.login.callback.handler.class": _CLASS,
    "sasl.login.class": _CLASS,
    "security.providers": _CLASS,
    "ssl.engine.factory.class": _CLASS,
}

# Properties that Firesteel itself reads.
_OWN = {
    "client.id.prefix",
    "commit.offsets.on.checkpoint",
    "default.api.timeout.ms",
    "partition.discovery.interval.ms",
}

# Properties that are translated together.
_SECRETS = {
    "sasl.jaas.config",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}

KNOWN_NAMES = sorted({*_SAME.split(), *_RENAMED, *_MEANINGLESS, *_REFUSED, *_OWN, *_SECRETS})

_DEFAULTS = {
    # The defaults of librdkafka differ from those of the Java client here.
    "check.crcs": "true",
    "enable.auto.commit": "false",
    "isolation.level": "read_uncommitted",
    # A client with enough records fetches again after this time. Readers here are fast, so with
    # librdkafka's default of a second they would mostly wait.
    "fetch.queue.backoff.ms": "10",
}

# The properties for a client that reads no records.
_FOR_ALL_CLIENTS = re.compile(
    r"(bootstrap\.servers|client|security|sasl|ssl|enable\.ssl|enable\.sasl|oauthbearer|socket|broker"
    r"|reconnect|retry|metadata|connections|api\.version|debug|log)([._].*)?"
)

_CREDENTIAL = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def translate(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate properties of the Java client to those of librdkafka."""
    translated = dict(_DEFAULTS)
    for name, value in properties.items():
        if name in _OWN or name in _SECRETS:
            continue
        if name in _REFUSED:
            raise ConfigurationError(
                f"The Kafka property {name} is not supported: {_REFUSED[name]}.", key=name
            )
        if name in _MEANINGLESS:
            _LOG.warning("The Kafka property %s has no effect: %s", name, _MEANINGLESS[name])
            continue
        translated[_RENAMED.get(name, name)] = value
    if translated.get("ssl.endpoint.identification.algorithm") == "":
        translated["ssl.endpoint.identification.algorithm"] = "none"
    return translated | _stores(properties) | _credentials(properties)


def admin_properties(translated: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for the client of the driver, which reads no records."""
    return {
        name: value
        for name, value in translated.items()
        if _FOR_ALL_CLIENTS.fullmatch(name) and name != "client.rack"
    }


def check_properties(translated: Mapping[str, str]) -> None:
    """Let librdkafka check names and values, without a connection."""
    from confluent_kafka import Consumer, KafkaException

    config: dict[str, object] = {**translated, "log_level": 0}
    del config["bootstrap.servers"]
    config.setdefault("group.id", "check")
    try:
        Consumer(config).close()
    except KafkaException as error:
        reason = error.args[0].str()
        named = re.search(r'property:? "([^"]+)"', reason)
        key = named[1] if named else None
        known = key is not None and not reason.startswith("No such")
        close = [] if key is None or known else get_close_matches(key, KNOWN_NAMES, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ConfigurationError(
            f"Kafka's client does not accept the properties: {reason}.{hint}",
            key=key,
            suggestion=close[0] if close else None,
        ) from error


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate the key stores. OpenSSL reads PEM and PKCS#12, but not Java's own format."""
    key_type = properties.get("ssl.keystore.type", "")
    if properties.get("ssl.keystore.location") and key_type.upper() not in ("PKCS12", "PEM"):
        raise ConfigurationError(
            f"ssl.keystore.type is {key_type or 'JKS'}, a format of Java that librdkafka cannot "
            "read. Convert the store with keytool -importkeystore -deststoretype PKCS12, and set "
            "ssl.keystore.type to PKCS12.",
            key="ssl.keystore.type",
        )
    trust = properties.get("ssl.truststore.location")
    if trust is None:
        return {}
    if properties.get("ssl.truststore.type", "").upper() != "PEM":
        raise ConfigurationError(
            "ssl.truststore.location names a Java key store, which librdkafka cannot read. Export "
            "the certificates as PEM (keytool -exportcert -rfc), and set ssl.truststore.type to "
            "PEM, or use ssl.ca.location.",
            key="ssl.truststore.location",
        )
    return {"ssl.ca.location": trust}


def _credentials(properties: Mapping[str, str]) -> dict[str, str]:
    """Extract user and password from ``sasl.jaas.config``."""
    jaas = properties.get("sasl.jaas.config")
    if jaas is None:
        return {}
    if not re.search(r"\b(PlainLoginModule|ScramLoginModule)\b", jaas):
        raise ConfigurationError(
            "sasl.jaas.config names a Java login module that Firesteel does not support. It "
            "supports PlainLoginModule and ScramLoginModule. For other mechanisms, set "
            "librdkafka's properties sasl.*.",
            key="sasl.jaas.config",
        )
    found = {
        match[1]: match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        for match in _CREDENTIAL.finditer(jaas)
    }
    if len(found) < 2:
        raise ConfigurationError(
            'sasl.jaas.config needs username="..." and password="...".', key="sasl.jaas.config"
        )
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
