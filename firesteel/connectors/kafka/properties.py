"""Properties of Kafka's Java client, translated for librdkafka.

Most names are the same, and some differ. Names without a meaning here are logged. Names of Java
classes and files are errors. Names of librdkafka are accepted, too.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches

from firesteel.errors import ConfigurationError

__all__ = [
    "CONSUMER_DEFAULTS",
    "KNOWN_NAMES",
    "PRODUCER_DEFAULTS",
    "admin_properties",
    "check_properties",
    "flag",
    "idempotence",
    "number",
    "require_client",
    "translate",
]

_LOG = logging.getLogger(__name__)

_SAME = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers
    check.crcs client.dns.lookup client.id client.rack compression.type connections.max.idle.ms
    delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push fetch.max.bytes fetch.min.bytes group.id heartbeat.interval.ms isolation.level
    linger.ms max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms metadata.max.age.ms metadata.recovery.strategy
    reconnect.backoff.max.ms reconnect.backoff.ms retries retry.backoff.max.ms retry.backoff.ms
    sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url security.protocol session.timeout.ms
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.endpoint.identification.algorithm
    ssl.key.password ssl.keystore.password transaction.timeout.ms
"""

_RENAMED = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
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
    "key.serializer": "set_key_serialization_schema sets the schema",
    "metadata.max.idle.ms": "the client forgets no topic that it writes",
    "max.poll.records": "Firesteel reads as many records as an epoch can process",
    "metrics.num.samples": _JVM,
    "metrics.recording.level": _JVM,
    "metrics.sample.window.ms": _JVM,
    "partition.assignment.strategy": _ASSIGNED,
    "partitioner.adaptive.partitioning.enable": _JVM,
    "partitioner.availability.timeout.ms": _JVM,
    "partitioner.ignore.keys": "set_partitioner chooses the partition",
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
    "value.serializer": "set_value_serialization_schema sets the schema",
}

_CLASS = "it names a Java class, which Firesteel's client cannot load; remove the property"
_REFUSED = {
    "interceptor.classes": _CLASS,
    "metric.reporters": _CLASS,
    "partitioner.class": "it names a Java class; use set_partitioner of the record serializer",
    "sasl.client.callback.handler.class": _CLASS,
    "sasl.login.callback.handler.class": _CLASS,
    "sasl.login.class": _CLASS,
    "security.providers": _CLASS,
    "ssl.engine.factory.class": _CLASS,
    "transactional.id": "each transaction has its own; use set_transactional_id_prefix",
}

# Properties that Firesteel itself reads.
_OWN = {
    "client.id.prefix",
    "commit.offsets.on.checkpoint",
    "default.api.timeout.ms",
    "ignore.failures.after.transaction.timeout",
    "max.block.ms",
    "partition.discovery.interval.ms",
}

# Properties that are translated together.
_TOGETHER = {
    "buffer.memory",
    "sasl.jaas.config",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}

KNOWN_NAMES = sorted({*_SAME.split(), *_RENAMED, *_MEANINGLESS, *_REFUSED, *_OWN, *_TOGETHER})

CONSUMER_DEFAULTS = {
    # The defaults of librdkafka differ from those of the Java client here.
    "check.crcs": "true",
    "enable.auto.commit": "false",
    "isolation.level": "read_uncommitted",
    # A client with enough records fetches again after this time. Readers here are fast, so with
    # librdkafka's default of a second they would mostly wait.
    "fetch.queue.backoff.ms": "10",
}

PRODUCER_DEFAULTS = {
    # The placement of the Java client, so that equal keys meet whichever client writes them.
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": "500000",
    "queue.buffering.max.kbytes": "65536",
}

# The properties for a client that reads no records.
_FOR_ALL_CLIENTS = re.compile(
    r"(bootstrap\.servers|client|security|sasl|ssl|enable\.ssl|enable\.sasl|oauthbearer|socket|broker"
    r"|reconnect|retry|metadata|connections|api\.version|debug|log)([._].*)?"
)

_OPTION = re.compile(r"""\b(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def translate(
    properties: Mapping[str, str], defaults: Mapping[str, str] = CONSUMER_DEFAULTS
) -> dict[str, str]:
    """Translate properties of the Java client to those of librdkafka.

    Args:
        properties: The properties of the user.
        defaults: The defaults that differ from those of librdkafka.
    """
    translated = dict(defaults)
    for name, value in properties.items():
        if name in _OWN or name in _TOGETHER:
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
    if "buffer.memory" in properties:
        kilobytes = max(1, number(properties, "buffer.memory", 0) // 1024)
        translated["queue.buffering.max.kbytes"] = str(kilobytes)
    return translated | _stores(properties) | _credentials(properties)


def idempotence(properties: Mapping[str, str]) -> dict[str, str]:
    """Enable idempotence, unless other properties rule it out. The Java client does the same."""
    if "enable.idempotence" in properties:
        return {}
    compatible = (
        properties.get("acks", "all") in ("all", "-1")
        and properties.get("retries", "1") != "0"
        and int(properties.get("max.in.flight.requests.per.connection", "5")) <= 5
    )
    return {"enable.idempotence": "true"} if compatible else {}


def admin_properties(translated: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for the client of the driver, which reads no records."""
    return {
        name: value
        for name, value in translated.items()
        if _FOR_ALL_CLIENTS.fullmatch(name) and name != "client.rack"
    }


def check_properties(translated: Mapping[str, str], *, writes: bool = False) -> None:
    """Let librdkafka check names and values, without a connection.

    Args:
        translated: The properties of librdkafka.
        writes: True for a producer, False for a consumer.
    """
    from confluent_kafka import Consumer, KafkaException, Producer

    config: dict[str, object] = {**translated, "log_level": 0}
    del config["bootstrap.servers"]
    try:
        if writes:
            Producer(config)
        else:
            Consumer({"group.id": "check", **config}).close()
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
    stores = {}
    if keys := properties.get("ssl.keystore.location"):
        if key_type.upper() == "PEM":
            stores = {"ssl.certificate.location": keys, "ssl.key.location": keys}
        else:
            stores = {"ssl.keystore.location": keys}
    trust = properties.get("ssl.truststore.location")
    if trust is None:
        return stores
    if properties.get("ssl.truststore.type", "").upper() != "PEM":
        raise ConfigurationError(
            "ssl.truststore.location names a Java key store, which librdkafka cannot read. Export "
            "the certificates as PEM (keytool -exportcert -rfc), and set ssl.truststore.type to "
            "PEM, or use ssl.ca.location.",
            key="ssl.truststore.location",
        )
    return {**stores, "ssl.ca.location": trust}


def _credentials(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate ``sasl.jaas.config``, which has user and password, or the options of OAuth."""
    jaas = properties.get("sasl.jaas.config")
    if jaas is None:
        return {}
    module = re.search(r"\b(Plain|Scram|OAuthBearer)LoginModule\b", jaas)
    if module is None:
        raise ConfigurationError(
            "sasl.jaas.config names a Java login module that Firesteel does not support. It "
            "supports PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule. For other "
            "mechanisms, set librdkafka's properties sasl.*.",
            key="sasl.jaas.config",
        )
    found = {
        match[1]: match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        for match in _OPTION.finditer(jaas)
    }
    if module[1] == "OAuthBearer":
        return _oauth(properties, found)
    if "username" not in found or "password" not in found:
        raise ConfigurationError(
            'sasl.jaas.config needs username="..." and password="...".', key="sasl.jaas.config"
        )
    return {"sasl.username": found["username"], "sasl.password": found["password"]}


def _oauth(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Translate the options of OAuthBearerLoginModule."""
    if name := options.get("unsecuredLoginStringClaim_sub"):
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={name}",
        }
    if "sasl.oauthbearer.token.endpoint.url" not in properties or "clientId" not in options:
        raise ConfigurationError(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, and a sasl.jaas.config with "
            'clientId="..." and clientSecret="...".',
            key="sasl.jaas.config",
        )
    translated = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": options["clientId"],
        "sasl.oauthbearer.client.secret": options.get("clientSecret", ""),
    }
    if "scope" in options:
        translated["sasl.oauthbearer.scope"] = options["scope"]
    return translated


def number(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return the value of a property that is a number."""
    text = properties.get(name)
    try:
        return default if text is None else int(text)
    except ValueError:
        unit = " of milliseconds" if name.endswith(".ms") else ""
        raise ConfigurationError(
            f"The Kafka property {name} must be a number{unit}, got {text!r}", key=name
        ) from None


def flag(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """Return the value of a property that is true or false."""
    text = properties.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise ConfigurationError(
            f"The Kafka property {name} must be true or false, got {text!r}", key=name
        )
    return text.lower() == "true"


def require_client(who: str) -> None:
    """Raise an error if the Kafka client is not installed.

    Args:
        who: The class that needs it.
    """
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ConfigurationError(
            f"{who} needs the Python package confluent-kafka, which is not installed. Install "
            "it on every machine that runs tasks: pip install 'firesteel[kafka]'"
        )
