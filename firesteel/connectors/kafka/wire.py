"""Requests of Kafka's protocol to one broker, over TCP or TLS, with SASL.

librdkafka cannot commit or abort a transaction that a different process began, and its admin client
cannot list transactions. ``transactions.py`` sends these few requests itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import socket
import ssl
import struct
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from firesteel.connectors.kafka.errors import KafkaAuthenticationError, untrusted_certificate
from firesteel.errors import ConfigurationError

__all__ = ["Broker", "Reader", "Writer", "addresses"]

_T = TypeVar("_T")

_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_MOST_BYTES = 100 * 1024 * 1024
_DEFAULT_PORT = 9092


def addresses(servers: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of ``bootstrap.servers``."""
    found = []
    for server in servers.split(","):
        text = server.strip().rpartition("://")[2]
        host, colon, port = text.rpartition(":")
        found.append((host.strip("[]"), int(port)) if colon else (text, _DEFAULT_PORT))
    return found


class Writer:
    """Encodes the body of a request. Strings and arrays have the compact form."""

    def __init__(self) -> None:
        self._data = bytearray()

    def pack(self, layout: str, *values: Any) -> Writer:
        """Append numbers, in the layout of ``struct``, without its prefix for the byte order."""
        self._data += struct.pack(f">{layout}", *values)
        return self

    def length(self, count: int) -> Writer:
        """Append the length of a compact string or array: a variable integer, plus one."""
        count += 1
        while count > 0x7F:
            self._data.append(count & 0x7F | 0x80)
            count >>= 7
        self._data.append(count)
        return self

    def text(self, value: str) -> Writer:
        data = value.encode()
        self.length(len(data))
        self._data += data
        return self

    def texts(self, values: Iterable[str]) -> Writer:
        values = list(values)
        self.length(len(values))
        for value in values:
            self.text(value)
        return self

    def end(self) -> bytes:
        """Append the empty list of tagged fields that ends a structure."""
        self._data.append(0)
        return bytes(self._data)


class Reader:
    """Decodes the body of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def unpack(self, layout: str) -> Any:
        """Return one number, or a tuple of several."""
        layout = f">{layout}"
        values = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return values[0] if len(values) == 1 else values

    def text(self) -> str:
        length = max(0, self._varint() - 1)  # 0 is a missing text
        data = self._data[self._position : self._position + length]
        self._position += length
        return data.decode()

    def array(self, item: Callable[[], _T]) -> list[_T]:
        return [item() for _ in range(max(0, self._varint() - 1))]

    def tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self._varint()):
            self._varint()
            self._position += self._varint()

    def rest(self) -> bytes:
        return self._data[self._position :]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


class Broker:
    """A connection to one broker. Errors of the network are OSErrors."""

    def __init__(
        self, address: tuple[str, int], properties: Mapping[str, str], timeout: float
    ) -> None:
        """Connect, and authenticate if the properties say so.

        Args:
            address: Host and port.
            properties: Properties of librdkafka.
            timeout: The longest time to wait for the connection and for an answer, in seconds.
        """
        self._address = address
        self._properties = properties
        self._correlation = 0
        protocol = properties.get("security.protocol", "plaintext").lower()
        self._socket = socket.create_connection(address, timeout)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if protocol in ("ssl", "sasl_ssl"):
                self._encrypt(address[0])
            if protocol.startswith("sasl"):
                self._authenticate(properties.get("sasl.mechanism", "GSSAPI"))
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def request(self, key: int, version: int, body: bytes, *, flexible: bool = True) -> Reader:
        """Send a request and return its answer.

        Args:
            key: The number of the API.
            version: The version of the request.
            body: The encoded fields.
            flexible: The version has tagged fields.
        """
        self._correlation += 1
        client = self._properties.get("client.id", "firesteel").encode()
        header = struct.pack(">hhih", key, version, self._correlation, len(client)) + client
        message = header + (b"\0" if flexible else b"") + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._receive(4))
        if not 4 <= size <= _MOST_BYTES:
            raise ConnectionError(f"{self._address[0]}:{self._address[1]} does not speak Kafka")
        answer = Reader(self._receive(size))
        if answer.unpack("i") != self._correlation:
            raise ConnectionError("the answer belongs to a different request")
        if flexible:
            answer.tags()
        return answer

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            some = self._socket.recv(size - len(data))
            if not some:
                raise ConnectionError("the broker closed the connection")
            data += some
        return bytes(data)

    # TLS

    def _encrypt(self, host: str) -> None:
        properties = self._properties
        verify = properties.get("enable.ssl.certificate.verification", "true") == "true"
        context = ssl.create_default_context(
            cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem")
        )
        algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
        context.check_hostname = verify and algorithm == "https"
        context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
        self._load_certificate(context)
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            address = f"{host}:{self._address[1]}"
            raise untrusted_certificate(address, error.verify_message) from error

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        properties = self._properties
        if properties.get("ssl.keystore.location"):
            raise ConfigurationError(
                "A KafkaSink with EXACTLY_ONCE needs the client's key and certificate as PEM: set "
                "ssl.keystore.type to PEM, and ssl.keystore.location to a file with both.",
                key="ssl.keystore.type",
            )
        password = properties.get("ssl.key.password")
        if certificate := properties.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, properties.get("ssl.key.location"), password)
        elif pem := properties.get("ssl.certificate.pem"):
            # Python reads keys from files only.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(pem + "\n" + properties.get("ssl.key.pem", ""))
                file.flush()
                context.load_cert_chain(file.name, None, password)

    # SASL

    def _authenticate(self, mechanism: str) -> None:
        exchange = {
            "PLAIN": self._plain,
            "SCRAM-SHA-256": lambda: self._scram("sha256"),
            "SCRAM-SHA-512": lambda: self._scram("sha512"),
            "OAUTHBEARER": self._bearer,
        }.get(mechanism)
        if exchange is None:
            raise ConfigurationError(
                f"A KafkaSink with EXACTLY_ONCE does not support sasl.mechanism {mechanism}. It "
                "supports PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER.",
                key="sasl.mechanism",
            )
        name = mechanism.encode()
        body = struct.pack(">h", len(name)) + name
        answer = self.request(_SASL_HANDSHAKE, 1, body, flexible=False)
        if answer.unpack("h"):
            raise self._refused(f"it does not offer {mechanism}", "sasl.mechanism")
        exchange()

    def _say(self, data: bytes) -> bytes:
        body = struct.pack(">i", len(data)) + data
        answer = self.request(_SASL_AUTHENTICATE, 1, body, flexible=False)
        error, length = answer.unpack("hh")
        reason = answer.unpack(f"{max(0, length)}s").decode()
        if error:
            raise self._refused(reason, "sasl.jaas.config (or sasl.username and sasl.password)")
        said: bytes = answer.unpack(f"{answer.unpack('i')}s")
        return said

    def _refused(self, reason: str, settings: str) -> KafkaAuthenticationError:
        return KafkaAuthenticationError(f"{self._address[0]}:{self._address[1]}", reason, settings)

    def _login(self) -> tuple[str, str]:
        return self._properties.get("sasl.username", ""), self._properties.get("sasl.password", "")

    def _plain(self) -> None:
        user, password = self._login()
        self._say(f"\0{user}\0{password}".encode())

    def _scram(self, algorithm: str) -> None:
        """Authenticate as RFC 5802 says, which proves the password to both sides."""
        user, password = self._login()
        nonce = secrets.token_urlsafe(24)
        first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        challenge = self._say(f"n,,{first}".encode()).decode()
        fields = dict(part.split("=", 1) for part in challenge.split(","))
        if not fields["r"].startswith(nonce):
            raise self._refused("it repeats a wrong number", "bootstrap.servers")
        salted = hashlib.pbkdf2_hmac(
            algorithm, password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{first},{challenge},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", algorithm)
        stored_key = hashlib.new(algorithm, client_key).digest()
        signature = hmac.digest(stored_key, signed, algorithm)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        encoded = base64.b64encode(proof).decode()
        answer = self._say(f"{without_proof},p={encoded}".encode()).decode()
        server_key = hmac.digest(salted, b"Server Key", algorithm)
        expected = base64.b64encode(hmac.digest(server_key, signed, algorithm)).decode()
        if answer != f"v={expected}":
            raise self._refused("it does not know the password itself", "bootstrap.servers")

    def _bearer(self) -> None:
        refusal = self._say(f"n,,\x01auth=Bearer {self._token()}\x01\x01".encode())
        if refusal:
            # The server tells its reason, and expects this answer before it ends the exchange.
            reason = refusal.decode(errors="replace")
            raise self._refused(
                f"it refuses the token: {reason}", "sasl.jaas.config and sasl.oauthbearer.*"
            )

    def _token(self) -> str:
        properties = self._properties
        if properties.get("enable.sasl.oauthbearer.unsecure.jwt") == "true":
            return _unsecured_token(properties.get("sasl.oauthbearer.config", ""))
        if properties.get("sasl.oauthbearer.method") != "oidc":
            raise ConfigurationError(
                "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url and a sasl.jaas.config "
                "with clientId and clientSecret.",
                key="sasl.jaas.config",
            )
        return _token_of_endpoint(properties)


def _unsecured_token(config: str) -> str:
    options = dict(part.split("=", 1) for part in config.split())
    now = time.time()
    lifetime = int(options.get("lifeSeconds", "3600"))
    claims = {"sub": options.get("principal", ""), "iat": now, "exp": now + lifetime}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    encoded = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
    return f"{'.'.join(encoded)}."


def _token_of_endpoint(properties: Mapping[str, str]) -> str:
    """Ask the token endpoint of an identity provider, with the client's credentials."""
    url = properties["sasl.oauthbearer.token.endpoint.url"]
    client = properties.get("sasl.oauthbearer.client.id", "")
    secret = properties.get("sasl.oauthbearer.client.secret", "")
    form = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    credentials = base64.b64encode(f"{client}:{secret}".encode()).decode()
    context = None
    if url.startswith("https:"):
        context = ssl.create_default_context(cafile=properties.get("https.ca.location"))
    request = urllib.request.Request(
        url,
        urllib.parse.urlencode(form).encode(),
        {"Authorization": f"Basic {credentials}", "Accept": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return str(json.load(answer)["access_token"])
    except (OSError, ValueError, KeyError) as error:
        raise KafkaAuthenticationError(
            url, f"it gives no token: {error}", "sasl.oauthbearer.token.endpoint.url"
        ) from error
