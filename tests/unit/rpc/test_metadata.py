"""Metadata is encoded as by grpclib."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib.metadata import encode_metadata
from hypothesis import given
from hypothesis import strategies as st

from rpc import metadata

NAMES = st.one_of(
    st.text("abz09_.-A :\n", max_size=6),
    st.sampled_from(
        ["te", "tea", "content-type", "user-agent", "grpc-x", "grpc", "x-bin", "x-bin\n", "opid\n", "-bin"]
    ),
)
VALUES = st.one_of(st.text("a ~\n\tä", max_size=4), st.binary(max_size=4), st.none())


def result(encode: Any, pairs: list[tuple[str, Any]]) -> Any:
    try:
        return list(encode(pairs))
    except (ValueError, TypeError) as error:
        return type(error), str(error)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=3))
def test_fields_and_errors_are_those_of_grpclib(pairs: list[tuple[str, Any]]) -> None:
    assert result(metadata.encode, pairs) == result(encode_metadata, pairs)


@pytest.mark.parametrize("empty", [None, {}, []])
def test_no_metadata(empty: Any) -> None:
    assert metadata.encode(empty) == []


def test_a_mapping() -> None:
    mapping: dict[str, str | bytes] = {"opid": "1", "x-bin": b"\0"}
    assert metadata.encode(mapping) == [("opid", "1"), ("x-bin", "AA")]
