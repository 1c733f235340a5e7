"""Fuzz the machine document: `pytest tests/fuzz/fuzz_config.py`, or run this file where atheris is installed."""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schema.diff import difference
from schema.document.machine import KEYS, MachineDocument, decode_document
from schema.document.resources import RESOURCE_TYPES
from schema.errors import ConfigError
from schema.substitution import fill_placeholders, substitute


def run_input(data: bytes) -> None:
    """Decode `data` and use the result in every way. No input raises."""
    decoded = decode_document(data)
    for finding in (*decoded.problems, *decoded.warnings):
        assert isinstance(finding, ConfigError)
        assert finding.reason
        assert finding.path or decoded.document is None or finding.path in KEYS
        str(finding)
    assert decoded.document is not None or decoded.problems
    if decoded.document is None:
        return
    assert len(decoded.document.broken) <= len(decoded.problems)
    for entry in decoded.document.resources:
        assert entry.api.type == RESOURCE_TYPES[entry.path.partition(".")[0]]
        assert entry.version
    filled, _ = fill_placeholders(decoded.document, {})
    assert not difference(decoded.document, filled)
    difference(MachineDocument(), decoded.document)
    repr(decoded.document)
    if b"$" in data:
        substitute(data.decode(), {"A": '"'})


words = st.sampled_from(
    [
        "a", "b", "world", "rdk:component:motor", "rdk:service:motion", "motor", "fake", "x:y:z", "10s", "api-key",
        "debug", "${A}", "${environment.A}", "/", ":", "", "a" * 61,
    ]
)  # fmt: skip
keys = st.sampled_from(
    [
        "name", "api", "type", "namespace", "model", "attributes", "depends_on", "frame", "log_configuration", "level",
        "service_configs", "translation", "orientation", "geometry", "value", "x", "r", "th", "id", "key", "secret",
        "config", "handlers", "address", "executable_path", "env", "status", "error", "schedule", "resource", "method",
        "package",
        "pattern", "sessions", "heartbeat_window", "bind_address", "sensor_name", "maintenance_allowed_key", "subtype",
    ]
)  # fmt: skip
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words | st.text()
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=8),
    max_leaves=25,
)
documents = st.dictionaries(st.sampled_from(KEYS), trees | st.lists(trees, max_size=3))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    run_input(data)


@given(documents)
def test_any_json(document: dict[str, Any]) -> None:
    run_input(json.dumps(document).encode())


@given(documents, st.data())
def test_json_with_an_accident(document: dict[str, Any], data: st.DataObject) -> None:
    text = bytearray(json.dumps(document).encode())
    position = data.draw(st.integers(0, len(text) - 1))
    text[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    run_input(bytes(text))


def main() -> None:
    """Run atheris, which is not a dependency of the project and must be installed by hand."""
    import atheris  # type: ignore[import-not-found]

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
