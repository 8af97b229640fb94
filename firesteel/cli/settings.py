"""Options that several commands share: settings, the address of the session, JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.client.rest_client import RestClient
    from firesteel.common.configuration import Configuration
    from firesteel.filesystems.file_systems import FileSystemOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@contextlib.contextmanager
def explained_errors(doing: str = "") -> Iterator[None]:
    """Show errors of Firesteel without a traceback. ``doing`` names the action that failed."""
    try:
        yield
    except FiresteelError as error:
        raise click.ClickException(f"{doing} {error}" if doing else str(error)) from error


settings_option: Decorator = click.option(
    "-D",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting, for example -Ds3.endpoint=http://localhost:9000. It takes precedence over config.yaml.",
)
json_option: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="Print the answer as JSON, for other programs."
)
address_option: Decorator = click.option(
    "-m",
    "--jobmanager",
    "address",
    metavar="HOST:PORT",
    help="The session. The default is rest.address and rest.port of config.yaml, or the newest session "
    "that you have started on this machine.",
)


def given_settings(settings: tuple[str, ...]) -> Configuration:
    """The settings of the command line alone."""
    from firesteel.common.configuration import Configuration

    given = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"expected KEY=VALUE, got {setting!r}", param_hint="-D")
        given[key] = value
    return Configuration.from_dict(given)


def configuration_of(settings: tuple[str, ...]) -> Configuration:
    """The settings of config.yaml, replaced by those of the command line."""
    from firesteel.config.loader import load_configuration

    return load_configuration(given_settings(settings))


def file_system_options(settings: tuple[str, ...]) -> FileSystemOptions:
    """Access to object stores."""
    from firesteel.filesystems.settings import file_system_options as options_of

    return options_of(configuration_of(settings))


def session_client(address: str | None, settings: tuple[str, ...]) -> RestClient:
    """A client of the session that the options name."""
    from firesteel.client.remote_job import client_at, connect
    from firesteel.client.sessions import known_sessions
    from firesteel.config import rest_options

    configuration = configuration_of(settings)
    if address is not None:
        return client_at(address, configuration)
    if configuration.contains(rest_options.REST_ADDRESS) or configuration.contains(
        rest_options.REST_PORT
    ):
        return connect(configuration)
    known = known_sessions()
    return client_at(known[0].url, configuration) if known else connect(configuration)


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2))
