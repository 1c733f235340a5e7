"""Description of the methods of an API for command line help, forms on pages and the reference documentation."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from rpc.api.client import methods_for
from rpc.api.convert.converters import CONVERTERS, converter_of
from rpc.api.convert.encode import is_map, message_type
from rpc.api.convert.hints import Hint, signature_of
from rpc.api.convert.scalars import short_names, type_name
from rpc.api.methods import Method
from schema import API

_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "number": {"type": "number"},
    "whole number": {"type": "integer"},
    "whole number, 0 or more": {"type": "integer", "minimum": 0},
    "true or false": {"type": "boolean"},
    "text": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
}

_DEPTH: Final = 3  # levels of nested messages in a schema


@dataclass(frozen=True, slots=True)
class ArgumentInfo:
    """Description of a method argument."""

    name: str
    type: str  # for display
    required: bool
    default: Any  # JSON value; None without a default
    schema: dict[str, Any]  # JSON Schema of the value


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """Description of a method."""

    name: str
    path: str  # of the RPC
    doc: str  # docstring of the base class, with units and ranges; empty without a base class
    arguments: tuple[ArgumentInfo, ...]
    returns: str  # for display
    result: str  # name of the Python class of a result; empty for plain values
    monitored: bool  # the method moves something and is bound to the caller's session
    client_streaming: bool
    server_streaming: bool
    deprecated: bool


def describe(api: API | str, base: type | None = None) -> tuple[MethodInfo, ...]:
    """Describe the methods of an API or machine-wide service, in the published order.

    Docstrings, defaults and class names are those of `base`. MachineError (INVALID) for an unknown API.
    """
    return tuple(_describe(method, base) for method in methods_for(api).values())


def _describe(method: Method, base: type | None) -> MethodInfo:
    function = getattr(base, method.name, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    fields = dict(method.arguments)
    if method.streamed is not None and method.streamed.item:
        fields[method.streamed.argument] = method.item
    arguments = []
    for name in [*(p for p in parameters if p in fields), *(f for f in fields if f not in parameters)]:
        parameter, field = parameters.get(name), fields[name]
        default = parameter.default if parameter is not None else None
        streamed = method.streamed is not None and name == method.streamed.argument
        arguments.append(
            ArgumentInfo(
                name=name,
                type=f"stream of {type_text(field)}" if streamed else type_text(field),
                required=parameter is not None and default is inspect.Parameter.empty,
                default=_plain(default),
                schema=schema_of(field),
            )
        )
    return MethodInfo(
        name=method.name,
        path=method.path,
        doc=inspect.getdoc(function) or "" if function is not None else "",
        arguments=tuple(arguments),
        returns=_returns(method),
        result=_class_name(signature_of(function).result) if function is not None else "",
        monitored=method.monitored,
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
        deprecated=method.deprecated,
    )


def _class_name(hint: Hint) -> str:
    inner = hint.item or hint.value or hint
    return inner.cls.__name__ if inner.cls is not None and inner.cls.__module__ != "builtins" else ""


def _returns(method: Method) -> str:
    fields = method.reply.fields
    if not fields:
        text = "nothing"
    elif len(fields) == 1:
        text = type_text(fields[0])
    else:
        text = _fields_text(method.reply)
    return f"stream of {text}" if method.server_streaming else text


def type_text(field: FieldDescriptor) -> str:
    """Describe the values of a field for display."""
    if (row := CONVERTERS.get(field.full_name)) is not None:
        return row.words
    if is_map(field):
        return f"mapping to {_single_text(message_type(field).fields[1])}"
    return f"list of {_single_text(field)}" if field.is_repeated else _single_text(field)


def _single_text(field: FieldDescriptor) -> str:
    if field.message_type is None:
        return type_name(field)
    if (row := converter_of(field)) is not None:
        return row.words
    if (wrapped := wrapped_list(field.message_type)) is not None:
        return type_text(wrapped)
    return f"{field.message_type.name} {_fields_text(field.message_type)}"


def wrapped_list(descriptor: Descriptor) -> FieldDescriptor | None:
    """Return the field of a message whose only field is a list, such as JointPositions; otherwise None."""
    if descriptor.full_name in CONVERTERS or len(descriptor.fields) != 1 or not descriptor.fields[0].is_repeated:
        return None
    return descriptor.fields[0]


def _fields_text(descriptor: Descriptor) -> str:
    return f"{{{', '.join(field.name for field in descriptor.fields)}}}"


def schema_of(field: FieldDescriptor, depth: int = _DEPTH) -> dict[str, Any]:
    """Return the JSON Schema of a field, with nested messages down to `depth` levels."""
    if (row := CONVERTERS.get(field.full_name)) is not None:
        return dict(row.schema)
    if is_map(field):
        return {"type": "object", "additionalProperties": _single_schema(message_type(field).fields[1], depth)}
    item_schema = _single_schema(field, depth)
    return {"type": "array", "items": item_schema} if field.is_repeated else item_schema


def _single_schema(field: FieldDescriptor, depth: int) -> dict[str, Any]:
    if field.enum_type is not None:
        return {"enum": list(short_names(field.enum_type))}
    message = field.message_type
    if message is None:
        return dict(_SCHEMAS[type_name(field)])
    if (row := converter_of(field)) is not None:
        return dict(row.schema)
    if (wrapped := wrapped_list(message)) is not None:
        return schema_of(wrapped, depth)
    if depth == 0:
        return {"type": "object"}
    return {"type": "object", "properties": {inner.name: schema_of(inner, depth - 1) for inner in message.fields}}


def _plain(default: object) -> object:
    """Convert the default of a parameter to a JSON value; an enum becomes its name."""
    if default is inspect.Parameter.empty:
        return None
    return default.name if isinstance(default, Enum) else default
