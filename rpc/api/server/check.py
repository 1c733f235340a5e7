"""Check that a Python class fits a published service. Run when a service is first loaded, and by tests for all."""

from __future__ import annotations

from enum import Enum

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from rpc.api.convert.converters import CONVERTERS, Converter
from rpc.api.convert.encode import is_map, message_type
from rpc.api.convert.hints import Hint, Signature, fields_of, signature_of
from rpc.api.convert.names import EXTRA
from rpc.api.convert.scalars import type_name
from rpc.api.methods import Method

_SCALARS = {
    "number": (float, int),
    "whole number": (int, float),
    "whole number, 0 or more": (int, float),
    "true or false": (bool,),
    "text": (str,),
    "bytes": (bytes,),
}


def implementation_problems(method: Method, cls: type) -> list[str]:
    """Return the reasons why `cls` cannot implement `method`; empty if it can."""
    where = f"{cls.__name__}.{method.name}"
    function = getattr(cls, method.name, None)
    if function is None:
        return [f"{where} is missing"]
    try:
        signature = signature_of(function)
    except TypeError as error:
        return [f"{where}: {error}"]
    return [f"{where}: {problem}" for problem in (*_arguments(method, signature), *_result(method, signature))]


def _arguments(method: Method, signature: Signature) -> list[str]:
    reasons = []
    streamed = {method.streamed.argument} if method.streamed is not None else set()
    for name, slot in signature.parameters.items():
        field = method.arguments.get(name)
        if name in streamed:
            if slot.hint.stream is None:
                reasons.append(f"{name} must be an AsyncIterator")
            elif method.streamed is not None and method.streamed.item:
                reasons += misfits(method.item, slot.hint.stream, name)
        elif field is not None:
            reasons += misfits(field, slot.hint, name)
        elif slot.required:
            reasons.append(f"the request has no {name}")
        if name == EXTRA and method.resource and not slot.keyword_only:
            reasons.append("extra must be keyword-only")
    if not signature.any_keyword:
        missing = sorted((method.arguments.keys() | streamed) - signature.parameters.keys())
        reasons += [f"has no argument {name}" for name in missing]
    return reasons


def _result(method: Method, signature: Signature) -> list[str]:
    fields = method.reply.fields
    hint = signature.result
    if not fields or hint.is_open:
        return []
    if method.is_whole(hint):
        return _message_misfits(method.reply, hint, "result")
    return misfits(fields[0], hint, "result")


def misfits(field: FieldDescriptor, hint: Hint, where: str) -> list[str]:
    """Return the reasons why values of the hinted type do not fit the field; empty if they do."""
    if hint.is_open:
        return []
    if (row := CONVERTERS.get(field.full_name)) is not None:
        return _converter_misfits(row, hint, where)
    if is_map(field):
        value = message_type(field).fields[1]
        return misfits(value, hint.value, f"{where}.*") if hint.value is not None else [f"{where} must be a mapping"]
    if field.is_repeated:
        return (
            _item_misfits(field, hint.item, f"{where}.*") if hint.item is not None else [f"{where} must be a sequence"]
        )
    return _item_misfits(field, hint, where)


def _item_misfits(field: FieldDescriptor, hint: Hint, where: str) -> list[str]:
    if hint.is_open:
        return []
    if field.message_type is not None:
        return _message_misfits(field.message_type, hint, where)
    if field.enum_type is not None:
        fits = hint.cls is not None and (issubclass(hint.cls, (int, str)))
        if fits and hint.cls is not None and issubclass(hint.cls, Enum):
            numbers = {member.value for member in hint.cls}
            missing = [v.name for v in field.enum_type.values if v.number not in numbers]
            return [f"{where}: {hint.cls.__name__} lacks {', '.join(missing)}"] if missing else []
    else:
        fits = hint.cls in _SCALARS[type_name(field)]
    return [] if fits else [f"{where} must be {type_name(field)}"]


def _message_misfits(descriptor: Descriptor, hint: Hint, where: str) -> list[str]:
    if hint.is_open:
        return []
    row = CONVERTERS.get(descriptor.full_name)
    if row is not None and (row.is_free or hint.cls in row.classes):
        return _converter_misfits(row, hint, where)
    if row is not None and row.classes and hint.value is None and (hint.cls is None or fields_of(hint.cls) is None):
        return _converter_misfits(row, hint, where)
    if hint.value is not None:
        return []
    slots = fields_of(hint.cls) if hint.cls is not None else None
    if slots is None:
        if len(descriptor.fields) == 1:
            return misfits(descriptor.fields[0], hint, where)
        return [f"{where} must be a class with the fields of {descriptor.name}"]
    fields = {field.name: field for field in descriptor.fields}
    reasons = [f"{where}.{name} is not a field of {descriptor.full_name}" for name in slots if name not in fields]
    for name, slot in slots.items():
        if name in fields:
            reasons += misfits(fields[name], slot.hint, f"{where}.{name}")
    return reasons


def _converter_misfits(row: Converter, hint: Hint, where: str) -> list[str]:
    if row.is_free:
        return [] if hint.value is not None or hint.item is not None else [f"{where} must be a mapping"]
    names = " or ".join(cls.__name__ for cls in row.classes)
    return [] if hint.cls in row.classes else [f"{where} must be {names}"]
