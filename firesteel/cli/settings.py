"""Settings on the command line: ``-Dkey=value``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.common.configuration import Configuration
    from firesteel.filesystems.file_systems import FileSystemOptions


@contextlib.contextmanager
def explained_errors() -> Iterator[None]:
    try:
        yield
    except FiresteelError as error:
        raise click.ClickException(str(error)) from error


settings_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-D",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting, for example -Ds3.endpoint=http://localhost:9000. It takes precedence over config.yaml.",
)


def configuration_of(settings: tuple[str, ...]) -> Configuration:
    """The settings of config.yaml, replaced by those of the command line."""
    from firesteel.common.configuration import Configuration
    from firesteel.config.loader import load_configuration

    given = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"expected KEY=VALUE, got {setting!r}", param_hint="-D")
        given[key] = value
    return load_configuration(Configuration.from_dict(given))


def file_system_options(settings: tuple[str, ...]) -> FileSystemOptions:
    """Access to object stores."""
    from firesteel.filesystems.settings import file_system_options as options_of

    return options_of(configuration_of(settings))
