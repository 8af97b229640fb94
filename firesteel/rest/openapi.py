"""The OpenAPI document of the REST API, generated from its endpoints and their reply types."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable
from typing import Any, Union, get_args, get_origin

from firesteel.rest.calls import Endpoint
from firesteel.version import __version__

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document in the form of OpenAPI 3.1."""
    schemas: dict[str, Any] = {
        "Errors": {
            "type": "object",
            "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
            "required": ["errors"],
        }
    }
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Firesteel REST API", "version": f"v1/{__version__}"},
        "servers": [{"url": "/v1"}, {"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)(?::path)?}", endpoint.path)
    ] + [{"name": name, "in": "query", "schema": {"type": "string"}} for name in endpoint.query]
    is_text = endpoint.reply is str
    content = {
        "text/plain" if is_text else "application/json": {
            "schema": _schema(endpoint.reply, schemas)
        }
    }
    errors = {"application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}}
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            str(endpoint.status): {"description": endpoint.summary, "content": content},
            "4XX": {"description": "The request is refused.", "content": errors},
        },
    }
    if endpoint.own:
        operation["x-firesteel"] = True
        operation["description"] = "Not in Flink's API."
    if endpoint.changes:
        operation["security"] = [{"token": []}]
    return operation


def _schema(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], schemas)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(argument, schemas) for argument in arguments]}
    if origin in (typing.Required, typing.NotRequired):
        return _schema(arguments[0], schemas)
    name = kind.__name__
    if name not in schemas:
        schemas[name] = {}
        hints = typing.get_type_hints(kind)
        schemas[name] = {
            "type": "object",
            "properties": {key: _schema(value, schemas) for key, value in sorted(hints.items())},
            "required": sorted(kind.__required_keys__),
        }
        if kind.__doc__ and not kind.__doc__.startswith("dict("):
            schemas[name]["description"] = kind.__doc__.strip()
    return {"$ref": f"#/components/schemas/{name}"}
