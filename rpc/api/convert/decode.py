"""Conversion of messages to Python values of hinted types, or to dicts, lists and plain values without a hint.

A reader is built once for each descriptor and hint. An absent field becomes None if the hint allows it. Otherwise the
default of the parameter or class applies or, without a default, the field is read as an empty value.

A class with an attribute ITEM, which is the class of one item, can read a repeated field by itself: its class method
`read` is called with the messages and with the reader of a single one. It adds the index to the path of a FitError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from rpc.api.convert import values
from rpc.api.convert.converters import CONVERTERS
from rpc.api.convert.encode import is_map, message_type
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import ANY, Hint, Slot, fields_of
from rpc.api.convert.scalars import short_names

Reader: TypeAlias = Callable[[Any], Any]
"""Function that converts a message, or one of its fields, to a Python value; raises FitError."""

_cache: dict[tuple[str, Hint], Reader] = {}


def message_reader(descriptor: Descriptor, hint: Hint = ANY) -> Reader:
    """Return the cached reader of a message type for a hint."""
    key = (descriptor.full_name, hint)
    reader = _cache.get(key)
    if reader is None:
        deferred: list[Reader] = []
        _cache[key] = lambda message: deferred[0](message)  # types may be recursive
        reader = _cache[key] = _make_reader(descriptor, hint)
        deferred.append(reader)
    return reader


def _make_reader(descriptor: Descriptor, hint: Hint) -> Reader:
    row = CONVERTERS.get(descriptor.full_name)
    if row is not None and hint.cls is not None and hint.cls in row.classes:
        return row.classes[hint.cls]
    if hint.cls is not None and (slots := fields_of(hint.cls)) is not None:
        return _object_reader(hint.cls, keywords_reader({f.name: f for f in descriptor.fields}, slots))
    if row is not None and row.read is not None:
        return row.read
    if (hint.item is not None or hint.cls is not None) and len(descriptor.fields) == 1:
        return field_reader(descriptor.fields[0], hint)
    return _dict_reader(descriptor)


def _object_reader(cls: type, keywords: Reader) -> Reader:
    def read(message: Any) -> Any:
        return cls(**keywords(message))

    return read


def keywords_reader(fields: Mapping[str, FieldDescriptor], slots: Mapping[str, Slot]) -> Reader:
    """Return a reader of `fields` into keyword arguments for `slots`; fields without a slot are omitted."""
    always: list[tuple[str, Reader]] = []
    present: list[tuple[str, Reader, bool, bool]] = []  # name, reader, None if absent, default if absent
    for name, slot in slots.items():
        field = fields.get(name)
        if field is None:
            continue
        read = field_reader(field, slot.hint)
        if field.has_presence:
            present.append((name, read, slot.hint.optional, not slot.required))
        else:
            always.append((name, read))

    def read_keywords(message: Any) -> dict[str, Any]:
        keywords = {}
        name = ""
        try:
            for name, read in always:
                keywords[name] = read(message)
            for name, read, optional, default in present:
                if message.HasField(name):
                    keywords[name] = read(message)
                elif optional:
                    keywords[name] = None
                elif not default:
                    keywords[name] = read(message)
        except FitError as error:
            error.inside(name)
            raise
        return keywords

    return read_keywords


def _dict_reader(descriptor: Descriptor) -> Reader:
    always = [(f.name, field_reader(f)) for f in descriptor.fields if not f.has_presence]
    present = [(f.name, field_reader(f)) for f in descriptor.fields if f.has_presence]

    def read(message: Any) -> dict[str, Any]:
        values_by_name = {name: read_field(message) for name, read_field in always}
        for name, read_field in present:
            if message.HasField(name):
                values_by_name[name] = read_field(message)
        return values_by_name

    return read


def field_reader(field: FieldDescriptor, hint: Hint = ANY) -> Reader:
    """Return a reader of one field of a message, present or not."""
    row = CONVERTERS.get(field.full_name)
    if row is not None and row.read is not None:
        return row.classes.get(hint.cls, row.read) if hint.cls is not None else row.read
    name = field.name
    get = attrgetter(name)
    if is_map(field):
        return _map_reader(get, message_type(field).fields[1], hint.value or ANY)
    if field.is_repeated:
        read_item = _item_reader(field, hint.item or ANY)
        if (cls := hint.cls) is not None and read_item is not None:
            read_all, convert = cast(Any, cls).read, read_item
            return lambda message: read_all(get(message), convert)
        return _list_reader(get, read_item)
    read = _item_reader(field, hint)
    return get if read is None else lambda message: read(get(message))


def _item_reader(field: FieldDescriptor, hint: Hint) -> Reader | None:
    """Return a reader of a single value of the field, None if it needs no conversion."""
    if field.message_type is not None:
        return message_reader(field.message_type, hint)
    if field.enum_type is not None:
        return _enum_reader(field.enum_type, hint)
    return None


def _list_reader(get: Reader, read: Reader | None) -> Reader:
    if read is None:
        return lambda message: list(get(message))

    def read_items(message: Any) -> list[Any]:
        items: list[Any] = []
        try:
            for item in get(message):
                items.append(read(item))  # noqa: PERF401 - its length is the index in an error
        except FitError as error:
            error.inside(str(len(items)))
            raise
        return items

    return read_items


def _map_reader(get: Reader, field: FieldDescriptor, hint: Hint) -> Reader:
    if field.message_type is not None and field.message_type.full_name == "google.protobuf.Value":
        return lambda message: values.read_fields(get(message))
    read = _item_reader(field, hint)
    if read is None:
        return lambda message: dict(get(message))

    def read_entries(message: Any) -> dict[Any, Any]:
        entries = get(message)
        return {key: read(entries[key]) for key in entries}

    return read_entries


def _enum_reader(descriptor: EnumDescriptor, hint: Hint) -> Reader | None:
    names = short_names(descriptor)
    if hint.cls is not None and issubclass(hint.cls, Enum):
        cls = hint.cls

        def read(value: int) -> Enum:
            try:
                return cls(value)
            except ValueError:
                raise FitError(f"one of {', '.join(names)}", value) from None

        return read
    if hint.cls is int:
        return None
    by_number = {number: name for name, number in reversed(names.items())}
    return lambda value: by_number.get(value, value)
