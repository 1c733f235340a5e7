"""The message classes of the services agree with the descriptors of the calls that take and return them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Struct

import cloud.services
from cloud.domain.permissions.shown import Shown, ShownText
from cloud.services.target import SERVICES
from rpc.api import table
from rpc.api.convert.hints import Hint, fields_of, signature_of
from rpc.api.methods import methods_of

SCALARS: Final[Mapping[int, tuple[type, ...]]] = {
    FieldDescriptor.CPPTYPE_STRING: (str, ShownText),
    FieldDescriptor.CPPTYPE_BOOL: (bool,),
    FieldDescriptor.CPPTYPE_DOUBLE: (float, int),
    FieldDescriptor.CPPTYPE_FLOAT: (float, int),
}
"""Classes that a scalar field can be filled from; those of all other kinds of numbers are `int`."""

WELL_KNOWN: Final[Mapping[str, tuple[type, ...]]] = {
    "google.protobuf.Timestamp": (datetime,),
    "google.protobuf.Duration": (timedelta, float, int),
    "google.protobuf.Struct": (Shown,),
}


def modules() -> Iterator[ModuleType]:
    """Yield the modules of messages of all services."""
    for info in pkgutil.walk_packages(cloud.services.__path__, "cloud.services."):
        if info.name.endswith("messages"):
            yield import_module(info.name)


CLASSES: Final = {
    item
    for module in modules()
    for item in vars(module).values()
    if isinstance(item, type) and issubclass(item, Struct) and item.__module__ == module.__name__
}
"""All message classes."""


class Comparison:
    """Comparison of type hints with descriptors. `problems` are the places where they differ."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.reached: set[type] = set()
        self._compared: set[tuple[type, str]] = set()

    def message(self, hint: Hint, descriptor: Descriptor, where: str) -> None:
        """Compare a hint with a message type."""
        if hint.is_open or (hint.cls and descriptor.full_name in WELL_KNOWN):
            if hint.cls and not issubclass(hint.cls, WELL_KNOWN[descriptor.full_name]):
                self.problems.append(f"{where}: {hint.cls.__name__} for {descriptor.full_name}")
            return
        slots = fields_of(hint.cls) if hint.cls and hint.item is None else None
        if hint.cls is None or slots is None or hint.cls not in CLASSES:
            if hint.value is None and len(descriptor.fields) == 1:
                self.field(hint, descriptor.fields[0], where)
            return
        self.reached.add(hint.cls)
        if not descriptor.fields or not any(name in descriptor.fields_by_name for name in slots):
            if len(descriptor.fields) == 1:
                self.field(hint, descriptor.fields[0], where)
            else:
                self.problems.append(f"{where}: {descriptor.full_name} has none of the fields of {hint.cls.__name__}")
            return
        if (hint.cls, descriptor.full_name) in self._compared:
            return
        self._compared.add((hint.cls, descriptor.full_name))
        for name, slot in slots.items():
            place = f"{hint.cls.__name__}.{name}"
            if field := descriptor.fields_by_name.get(name):
                self.field(slot.hint, field, place)
            else:
                self.problems.append(f"{place}: {descriptor.full_name} has no such field")

    def field(self, hint: Hint, field: FieldDescriptor, where: str) -> None:
        """Compare a hint with a field of a message."""
        if hint.is_open:
            return
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            if hint.value is None:
                self.problems.append(f"{where}: the field is a map")
            else:
                self._single(hint.value, message.fields_by_name["value"], where)
        elif field.is_repeated != (hint.item is not None):
            self.problems.append(f"{where}: the field is {'repeated' if field.is_repeated else 'single'}")
        else:
            self._single(hint.item or hint, field, where)

    def _single(self, hint: Hint, field: FieldDescriptor, where: str) -> None:
        if field.message_type is not None:
            self.message(hint, field.message_type, where)
            return
        classes = (
            (bytes, bytearray, memoryview) if field.type == field.TYPE_BYTES else SCALARS.get(field.cpp_type, (int,))
        )
        if field.enum_type is not None:
            classes = (int, str, Enum)
        if hint.cls and not issubclass(hint.cls, classes):
            self.problems.append(f"{where}: {hint.cls.__name__} for {field.full_name}")


def compared() -> Comparison:
    """Compare the parameters and results of all calls."""
    comparison = Comparison()
    for service, cls in SERVICES.items():
        for name, item in methods_of(table.SERVICES[service]).items():
            method = getattr(cls, name, None)
            if method is None:
                continue
            signature = signature_of(method)
            if item.is_whole(signature.result):
                comparison.message(signature.result, item.reply, item.path)
            else:
                comparison.field(signature.result, item.reply.fields[0], item.path)
            for parameter, slot in signature.parameters.items():
                if field := item.arguments.get(parameter):
                    comparison.field(slot.hint, field, f"{item.path} {parameter}")
    return comparison


def test_every_field_of_a_message_class_is_a_field_of_the_message_with_a_type_that_fits() -> None:
    comparison = compared()
    assert comparison.problems == []
    assert sorted(cls.__name__ for cls in CLASSES - comparison.reached) == []
    print(len(comparison.reached))
