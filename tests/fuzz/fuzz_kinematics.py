"""Fuzz kinematics files: `pytest tests/fuzz/fuzz_kinematics.py`, or run this file where atheris is installed."""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.geometry.sva import dump
from engine.kinematics.arms import named
from engine.kinematics.formats import read_chain
from engine.kinematics.mechanism import mechanism_of
from schema.errors import ConfigError, MachineError
from tests.unit.engine.kinematics.test_formats import DH, URDF


def run_input(data: bytes) -> None:
    """Read `data`; what is accepted can be computed with. Every other error has a path and a reason."""
    problem: ConfigError | None = None
    try:
        chain = read_chain(data, "p")
    except ConfigError as error:
        problem = error
    if problem is not None:
        assert problem.path == "p"
        assert problem.reason
        return
    mechanism = mechanism_of(chain)
    output = mechanism.output([min(axis.high, max(axis.low, 0.0)) for axis in mechanism.axes])
    assert len(output) == 12
    try:
        read_chain(dump(chain), "p")
    except MachineError:
        pass  # such as two links with one name, which the other form cannot express


SEEDS = [dump(named("xarm6")), json.dumps(DH).encode(), URDF]
numbers = st.sampled_from(["0", "-1", "1e400", "NaN", "-Infinity", "null", '"a"', "[]", "{}", "1e-320", "99999999999"])


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    run_input(data)


@given(st.sampled_from(SEEDS), st.data())
def test_a_file_with_an_accident(seed: bytes, data: st.DataObject) -> None:
    text = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(text) - 1))
        text[position : position + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    run_input(bytes(text))


@given(st.data())
def test_a_file_with_another_value(data: st.DataObject) -> None:
    document: Any = json.loads(data.draw(st.sampled_from(SEEDS[:2])))
    place = document
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.integers(0, 5)) == 0:
            place[key] = json.loads(data.draw(numbers))
            break
        place = place[key]
    run_input(json.dumps(document).encode())


def main() -> None:
    """Run atheris, which is not a dependency of the project and must be installed by hand."""
    import atheris  # type: ignore[import-not-found]

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
