"""Page tokens: encoding and decoding."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloud.values.cursor import cursor, read_cursor
from cloud.values.times import stored
from schema.errors import ErrorKind, MachineError


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 10**18 - 1))
@example(datetime.min.replace(tzinfo=UTC), 0)
@example(datetime.max.replace(tzinfo=UTC), 10**18 - 1)
def test_valid_snapshots_are_decoded(moment: datetime, number: int) -> None:
    assert read_cursor(cursor(moment, number)) == (stored(moment), number)


@given(st.text(st.sampled_from("-.0159²٣ x"), max_size=60))
@example("9" * 5000 + ".1")
@example("1." + "9" * 19)
def test_any_other_text_is_refused_or_can_be_stored(text: str) -> None:
    try:
        result = read_cursor(text)
    except MachineError:
        return
    assert all(-(2**63) <= item < 2**63 for item in result)


@pytest.mark.parametrize("text", ["", "1", "--1.1", "1.-1", "1.1.1", "².1"])
def test_refused_snapshots_have_a_reason(text: str) -> None:
    with pytest.raises(MachineError, match="the first page") as caught:
        read_cursor(text)
    assert caught.value.kind is ErrorKind.INVALID
