"""Conversion of Python values to messages, by the type of the value, so that no type hints are needed.

A message is filled from the keys of a mapping, from the fields of a dataclass or msgspec Struct or, if the message has
only one field, from the value of that field. None leaves a field unset if the class allows None.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from rpc.api.convert import values
from rpc.api.convert.converters import CONVERTERS
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import fields_of
from rpc.api.convert.scalars import check_of

Fill = Callable[[Any, Any], None]
"""Function that sets a message, or one of its fields, from a value; raises FitError."""

_SHOWN_FIELDS: Final = 12


class MessageFiller:
    """Filler of messages of one type. Use `filler`, which caches one instance for each type."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.name = descriptor.name
        self.full_name = descriptor.full_name
        self.fields: dict[str, Fill] = {}  # by name, filled in by `filler`
        self.optional: frozenset[str] = frozenset(f.name for f in descriptor.fields if f.has_presence)
        self.choices = tuple(
            frozenset(f.name for f in group.fields) for group in descriptor.oneofs if len(group.fields) > 1
        )
        self._plans: dict[type, Fill] = {}

    def fill(self, message: Any, value: Any) -> None:
        """Fill `message` from `value`; raises FitError."""
        plan = self._plans.get(type(value))
        if plan is None:
            plan = self._plans[type(value)] = self._plan(type(value), value)
        plan(message, value)

    def _plan(self, cls: type, value: Any) -> Fill:
        if getattr(value, "DESCRIPTOR", None) is not None:
            return self._copy
        if issubclass(cls, Mapping):
            return self._from_mapping
        slots = fields_of(cls)
        if slots is not None and (not self.fields or any(name in self.fields for name in slots)):
            steps = tuple(
                (name, self.fields[name], slot.hint.optional or name in self.optional)
                for name, slot in slots.items()
                if name in self.fields
            )
            choices = tuple(choice for choice in self.choices if len(choice & slots.keys()) > 1)
            return _from_attributes(steps, choices)
        if len(self.fields) == 1:
            return next(iter(self.fields.values()))
        return self._refuse

    def _copy(self, message: Any, value: Any) -> None:
        if value.DESCRIPTOR.full_name != self.full_name:
            raise FitError(f"a {self.full_name}", value)
        message.CopyFrom(value)

    def _from_mapping(self, message: Any, value: Mapping[str, Any]) -> None:
        fields = self.fields
        for name, item in value.items():
            fill = fields.get(name)
            if fill is None:
                if len(fields) == 1 and not isinstance(name, str):
                    raise self._unfit(value)
                raise FitError(f"one of the fields {', '.join(fields)}" if fields else "no fields", name)
            if item is None:
                continue
            try:
                fill(message, item)
            except FitError as error:
                error.inside(name)
                raise
        for choice in self.choices:
            _check_choice(choice, value, [name for name in choice if value.get(name) is not None])

    def _refuse(self, message: Any, value: Any) -> None:
        raise self._unfit(value)

    def _unfit(self, value: Any) -> FitError:
        names = list(self.fields)
        more = ", ..." if len(names) > _SHOWN_FIELDS else ""
        return FitError(f"a {self.name} ({', '.join(names[:_SHOWN_FIELDS])}{more})", value)


def _from_attributes(steps: tuple[tuple[str, Fill, bool], ...], choices: tuple[frozenset[str], ...]) -> Fill:
    def fill(message: Any, value: Any) -> None:
        for name, fill_field, optional in steps:
            item = getattr(value, name)
            if item is None and optional:
                continue
            try:
                fill_field(message, item)
            except FitError as error:
                error.inside(name)
                raise
        for choice in choices:
            _check_choice(choice, value, [name for name in choice if getattr(value, name, None) is not None])

    return fill


def _check_choice(choice: frozenset[str], value: Any, present: list[str]) -> None:
    if len(present) > 1:
        raise FitError(f"at most one of {', '.join(sorted(choice))}", value)


_fillers: dict[str, MessageFiller] = {}


def filler(descriptor: Descriptor) -> MessageFiller:
    """Return the cached filler of a message type."""
    message_filler = _fillers.get(descriptor.full_name)
    if message_filler is None:
        message_filler = _fillers[descriptor.full_name] = MessageFiller(descriptor)  # first: types may be recursive
        for field in descriptor.fields:
            message_filler.fields[field.name] = field_filler(field)
    return message_filler


def field_filler(field: FieldDescriptor) -> Fill:
    """Return a function that sets `field` of a message."""
    row = CONVERTERS.get(field.full_name)
    if row is not None and row.fill is not None:
        return row.fill
    if field.is_repeated:
        if is_map(field):
            return _map(field)
        return _repeated_message(field) if field.message_type is not None else _repeated_scalar(field)
    return _message(field) if field.message_type is not None else _scalar(field)


def message_fill(descriptor: Descriptor) -> Fill:
    """Return a function that fills messages of a type, including well-known types."""
    row = CONVERTERS.get(descriptor.full_name)
    return row.fill if row is not None and row.fill is not None else filler(descriptor).fill


def message_type(field: FieldDescriptor) -> Descriptor:
    """Return the message type of a message field."""
    assert field.message_type is not None
    return field.message_type


def is_map(field: FieldDescriptor) -> bool:
    """Return True for a map field."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _scalar(field: FieldDescriptor) -> Fill:
    name, check = field.name, check_of(field)

    def fill(message: Any, value: Any) -> None:
        setattr(message, name, check(value))

    return fill


def _message(field: FieldDescriptor) -> Fill:
    name, inner = field.name, message_fill(message_type(field))

    def fill(message: Any, value: Any) -> None:
        part = getattr(message, name)
        part.SetInParent()
        inner(part, value)

    return fill


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise FitError("a sequence", value)
    return value


_ARRAYS: Final = {
    FieldDescriptor.CPPTYPE_FLOAT: "f",
    FieldDescriptor.CPPTYPE_DOUBLE: "fd",
    FieldDescriptor.CPPTYPE_INT32: "bhiBH",
    FieldDescriptor.CPPTYPE_UINT32: "BHI",
    FieldDescriptor.CPPTYPE_INT64: "bhiqBHI",
    FieldDescriptor.CPPTYPE_UINT64: "BHIQ",
}
"""Type codes of `array.array` whose values always fit a field type, so that large tensors need no check per value."""


def _repeated_scalar(field: FieldDescriptor) -> Fill:
    name, check, arrays = field.name, check_of(field), _ARRAYS.get(field.cpp_type, "")

    def fill(message: Any, value: Any) -> None:
        if isinstance(value, array) and value.typecode in arrays:
            getattr(message, name).extend(value)
            return
        checked = []
        for index, item in enumerate(_items(value)):
            try:
                checked.append(check(item))
            except FitError as error:
                error.inside(str(index))
                raise
        getattr(message, name).extend(checked)

    return fill


def _repeated_message(field: FieldDescriptor) -> Fill:
    name, inner = field.name, message_fill(message_type(field))

    def fill(message: Any, value: Any) -> None:
        add = getattr(message, name).add
        for index, item in enumerate(_items(value)):
            try:
                inner(add(), item)
            except FitError as error:
                error.inside(str(index))
                raise

    return fill


def _map(field: FieldDescriptor) -> Fill:
    name = field.name
    key_field, value_field = message_type(field).fields
    if value_field.message_type is not None and value_field.message_type.full_name == "google.protobuf.Value":

        def fill_free(message: Any, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise FitError("a mapping", value)
            values.fill_fields(getattr(message, name), value)

        return fill_free

    check_key = check_of(key_field)
    inner = message_fill(value_field.message_type) if value_field.message_type is not None else None
    check = None if inner is not None else check_of(value_field)

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise FitError("a mapping", value)
        target = getattr(message, name)
        for key, item in value.items():
            key = check_key(key)
            try:
                if inner is not None:
                    inner(target[key], item)
                else:
                    assert check is not None
                    target[key] = check(item)
            except FitError as error:
                error.inside(str(key))
                raise

    return fill
