"""Random requests: messages with arbitrary values, and with existing ids in fields for ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

LONG: Final = Random(1).randbytes(30_000).hex()
"""Incompressible text: longer than PostgreSQL's index rows (about 2,700 bytes) and SQLite's patterns (50,000 bytes)."""
NUMBERS: Final = (  # page tokens, indexes and versions that a database cannot store or Python cannot parse
    "9" * 20, "9" * 5000, "-5.3", "--5.3", "1." + "9" * 25, "5." + "9" * 5000, "components." + "9" * 5000,
)  # fmt: skip
SHAPES: Final = tuple(  # documents that are valid JSON and nothing else
    f'{{"{section}": {value}}}'
    for section in ("components", "modules", "network", "triggers", "fragments", "fragment_mods", "agent", "log")
    for value in ("5", '"x"', "[5]", '{"x": 5}', '[{"name": 5, "notifications": 5, "id": 5}]')
)
TEXTS: Final = (
    "", "x", "🙂🙂", "a" * 300, "acme:x", "0", "-1", "1.5", "latest", "\x00", "\ud7ff", "%", "../x", "a\nb",
    "organization_owner", "robot", "organization", "location", "role", "components.a.x", "a@b.c", "1.0.0",
    "linux/amd64", "image/png", "SELECT * FROM readings", "SELECT 1/0", "{}", "[1]", "null", '{"components": 5}',
    '{"fragments": [5]}', '{"components": [{"name": "\\u0000"}]}', '{"a": 1e999}', "[" * 2000, *NUMBERS, *SHAPES,
    LONG, LONG[:3000], LONG[:1000], f"https://{LONG[:2000]}", f"a@b.{LONG[:200]}", "a." * 3000 + "a",
    f'{{"fragments": [{{"disabled": true, "id": "{LONG[:5000]}"}}]}}',
)  # fmt: skip
INTEGERS: Final = (0, 1, 2, 5, 100, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
DOUBLES: Final = (0.0, 0.5, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e308)
BYTES: Final = (b"", b"x", b"\x1f\x8bzz", b"\x89PNG\r\n")
MOMENTS: Final = (0, -62135596800, -62135596801, 253402300799, 253402300800, 2**63 - 1, -(2**63))  # seconds
ANYS: Final = ("", "type.googleapis.com/google.protobuf.Struct", "type.googleapis.com/google.protobuf.StringValue")
ROLES: Final = ("owner", "operator")
PLACES: Final = ("organization", "location", "robot")

KINDS: Final[Mapping[str, str]] = {
    "organization_id": "organization", "org_id": "organization", "current_organization_id": "organization",
    "organization_ids": "organization", "location_id": "location", "location": "location",
    "location_ids": "location", "parent_location_id": "location", "robot_id": "robot", "machine_id": "robot",
    "part_id": "part", "robot_part_id": "part", "item_id": "item", "module_id": "item", "fragment_id": "fragment",
    "fragment_ids": "fragment", "additional_fragment_ids": "fragment", "dataset_id": "dataset",
    "dataset_ids": "dataset", "binary_data_id": "file", "binary_data_ids": "file", "file_id": "file",
    "identity_id": "key", "bbox_id": "box",
}  # fmt: skip
"""The kind of object whose id a field of this name holds."""
SUBJECTS: Final = (  # the kind of object whose id the field `id` holds, by the first word that the path contains
    ("Fragment", "fragment"), ("Part", "part"), ("Dataset", "dataset"), ("Key", "key"), ("TrainingJob", "job"),
    ("Package", "item"), ("v1.RobotService", "part"), ("Agent", "part"), ("Robot", "robot"),
)  # fmt: skip


class Filler:
    """Fill messages with values; `known` maps kinds to ids and may grow."""

    def __init__(self, random: Random, accepted: Mapping[str, Sequence[str]]) -> None:
        self._random = random
        self._accepted = accepted
        self._path = ""

    def message(self, path: str, cls: type[Message]) -> Message:
        """Return a request for the call at `path`."""
        self._path = path
        request = cls()
        self._fill(request, 0)
        return request

    def _fill(self, message: Any, depth: int) -> None:
        name, choose = message.DESCRIPTOR.full_name, self._random.choice
        if name == "google.protobuf.Timestamp":
            usual = self._random.random() < 0.6
            message.seconds = 1767225600 + self._random.randint(0, 100) if usual else choose(MOMENTS)
            message.nanos = choose((0, 1, 999_999_999) if usual else (-1, 10**9))
        elif name == "google.protobuf.Any":
            message.type_url, message.value = choose(ANYS), choose((b"", b"\x08", b"\x0a\x01x"))
        else:
            for field in message.DESCRIPTOR.fields:
                if depth <= 5 and self._random.random() < (0.75 if depth < 2 else 0.4):
                    self._field(message, field, depth)

    def _field(self, message: Any, field: FieldDescriptor, depth: int) -> None:
        place = getattr(message, field.name)
        if field.message_type is None:
            if field.label == FieldDescriptor.LABEL_REPEATED:
                place.extend(self._value(field) for _ in range(self._random.randint(0, 3)))
            else:
                setattr(message, field.name, self._value(field))
        elif field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            for _ in range(self._random.randint(0, 2)):
                key = self._random.choice(TEXTS)
                if value.message_type is None:
                    place[key] = self._value(value)
                else:
                    self._fill(place[key], depth + 1)
        elif field.label == FieldDescriptor.LABEL_REPEATED:
            for _ in range(self._random.randint(0, 2)):
                self._fill(place.add(), depth + 1)
        else:
            place.SetInParent()
            self._fill(place, depth + 1)

    def _value(self, field: FieldDescriptor) -> Any:
        choose = self._random.choice
        match field.type:
            case FieldDescriptor.TYPE_STRING:
                return self._text(field.name)
            case FieldDescriptor.TYPE_BYTES:
                return choose(BYTES)
            case FieldDescriptor.TYPE_BOOL:
                return choose((False, True))
            case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
                return choose(DOUBLES)
            case FieldDescriptor.TYPE_ENUM:
                assert field.enum_type is not None
                return choose([*(value.number for value in field.enum_type.values), 99])
        bits = 32 if field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 64
        signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return choose([number for number in (*INTEGERS, most) if least <= number <= most])

    def _text(self, name: str) -> str:
        choose = self._random.choice
        if self._random.random() < 0.2:
            return choose(TEXTS)
        if name == "authorization_id":
            return f"{choose(PLACES)}_{choose(ROLES)}"
        if name == "resource_type":
            return choose(PLACES)
        kind = KINDS.get(name, "")
        if name in ("id", "ids"):
            kind = next((kind for word, kind in SUBJECTS if word in self._path), "")
        elif name == "resource_id":
            kind = choose(PLACES)
        return choose(self._accepted.get(kind) or TEXTS)
