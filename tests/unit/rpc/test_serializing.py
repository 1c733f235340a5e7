"""Serialization in steps produces the same message as SerializeToString."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.struct_pb2 import ListValue, Struct
from hypothesis import given
from hypothesis import strategies as st

from rpc import serializing
from rpc.serializing import serialize_in_steps

words = st.text("aü\0", max_size=300)
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(words, inner, max_size=5),
    max_leaves=30,
)


def file_of(names: list[str], package: str) -> FileDescriptorProto:
    """Return a message with lists of messages, lists of texts and single values."""
    file = FileDescriptorProto(package=package, dependency=names)
    for name in names:
        file.message_type.add(name=name).field.add(name=name, number=200_000)
        file.service.add(name=name)
    return file


@given(st.lists(words, max_size=200), words)
def test_a_message_with_lists_is_parsed_as_it_was(names: list[str], package: str) -> None:
    file = file_of(names, package)
    before = file.SerializeToString()
    again = FileDescriptorProto.FromString(serialize_in_steps(file))
    assert again.SerializeToString() == before


@given(st.dictionaries(words, values, max_size=5))
def test_maps_and_lists_of_values(content: dict[str, Any]) -> None:
    struct = Struct()
    struct.update(content)
    assert Struct.FromString(serialize_in_steps(struct)) == struct
    items = ListValue()
    items.extend(content.values())
    expected = items.SerializeToString(deterministic=True)
    again = ListValue.FromString(serialize_in_steps(items))
    assert again.SerializeToString(deterministic=True) == expected


def test_each_entry_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(serializing, "_varint", lambda number: sizes.append(number) or b"\0")  # type: ignore[func-returns-value]
    serializing._lists_of_messages.cache_clear()
    serialize_in_steps(file_of(["a" * 1000] * 3, ""))
    serializing._lists_of_messages.cache_clear()
    assert sum(size > 1000 for size in sizes) == 6  # one for each message type and each service
