import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.system.journal import (
    TOO_LARGE,
    EntryLimit,
    JournalLines,
    Position,
    field_text,
    follow_command,
    parse_entry,
    parse_filter,
)

ENTRY = {
    "__CURSOR": "s=7f;i=3a2;b=9c;m=1;t=2;x=3",
    "__REALTIME_TIMESTAMP": "1753862400123456",
    "PRIORITY": "6",
    "SYSLOG_IDENTIFIER": "sshd",
    "_PID": "812",
    "MESSAGE": "Accepted publickey for pi",
}


def line(**fields: Any) -> bytes:
    return json.dumps(ENTRY | fields).encode()


def test_entry() -> None:
    entry = parse_entry(line(), 0)
    assert entry is not None
    assert (entry.level, entry.identifier, entry.name) == (logging.INFO, "sshd", "sshd[812]")
    assert entry.time == pytest.approx(1753862400.123456)
    assert entry.message == "Accepted publickey for pi"
    assert entry.cursor == ENTRY["__CURSOR"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("text", "text"),
        ([104, 105, 27, 91], "hi\x1b["),
        ([195, 169, 255], "é�"),
        (None, TOO_LARGE),
        (["first", "second"], "first\nsecond"),
        (["first", [104, 105], None], "first\nhi\n"),
        ([], ""),
        (7, "7"),
        ([1, 256], "1\n256"),
        ({"a": 1}, ""),
    ],
)
def test_message(message: object, text: str) -> None:
    entry = parse_entry(line(MESSAGE=message), 0)
    assert entry is not None
    assert entry.message == text


def test_an_entry_without_message() -> None:
    entry = parse_entry(b'{"_COMM": "init"}', 5.0)
    assert entry is not None
    assert (entry.message, entry.name, entry.time, entry.cursor) == ("", "init", 5.0, "")


@pytest.mark.parametrize(
    ("priority", "level"),
    [
        *((str(number), logging.ERROR) for number in range(4)),
        ("4", logging.WARNING),
        ("5", logging.INFO),
        ("6", logging.INFO),
        ("7", logging.DEBUG),
        ("8", logging.INFO),
        (None, logging.INFO),
        ([], logging.INFO),
    ],
)
def test_level(priority: object, level: int) -> None:
    entry = parse_entry(line(PRIORITY=priority), 0)
    assert entry is not None
    assert entry.level == level


@pytest.mark.parametrize("timestamp", ["", "x", "-1", "1" * 19, "9" * 18, None, "١"])
def test_an_entry_without_valid_time_gets_the_time_of_its_arrival(timestamp: object) -> None:
    entry = parse_entry(line(__REALTIME_TIMESTAMP=timestamp), 42.5)
    assert entry is not None
    assert entry.time == 42.5


@pytest.mark.parametrize(
    "garbage", [b"", b"-- No entries --", b"[]", b"null", b"\xff", b"{", b"[" * 5000, b'{"a":' * 5000]
)
def test_a_line_that_is_not_an_entry(garbage: bytes) -> None:
    assert parse_entry(garbage, 0) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(ENTRY)), JSON))
def test_any_fields_are_accepted(fields: dict[str, Any]) -> None:
    entry = parse_entry(json.dumps(fields).encode(), 1.0)
    assert entry is not None
    assert entry.name


@given(st.binary())
def test_any_line_is_accepted(data: bytes) -> None:
    parse_entry(data, 1.0)


@given(st.binary(min_size=1))
def test_bytes_become_text(data: bytes) -> None:
    assert field_text(list(data)) == data.decode(errors="replace")


@pytest.mark.parametrize(
    ("text", "accepted", "rejected", "problems"),
    [
        ("", "", "sshd kernel", []),
        ("  ", "", "sshd", []),
        ("all", "sshd kernel", "agent", []),
        ("sshd", "sshd", "kernel agent", []),
        (" sshd , kernel ", "sshd kernel", "cron", []),
        ("all,-sshd", "kernel", "sshd agent", []),
        ("-sshd , all", "kernel", "sshd", []),
        ("all, - sshd", "kernel", "sshd", []),
        ("sshd,sshd", "sshd", "kernel", []),
        ("sshd,,kernel", "sshd kernel", "", ["an entry is ''"]),
        ("all,-", "sshd", "agent", ["an entry is '-'"]),
        ("sshd,-sshd", "", "sshd", ["both included and excluded"]),
        ("all,-all,kernel", "kernel", "sshd", ["both included and excluded"]),
        ("-sshd", "", "sshd kernel", ["nothing is included"]),
        ("-all", "", "sshd", ["nothing is included"]),
        ("agent", "", "agent", ["never forwarded"]),
        ("all,agent", "sshd", "agent", ["never forwarded"]),
        ("All", "All", "sshd", []),
    ],
)
def test_filter(text: str, accepted: str, rejected: str, problems: list[str]) -> None:
    selected, reported = parse_filter(text, {"agent"})
    assert all(map(selected.accepts, accepted.split()))
    assert not any(map(selected.accepts, rejected.split()))
    assert selected.is_active == bool(accepted)
    assert len(reported) == len(problems)
    for problem, part in zip(reported, problems, strict=True):
        assert part in str(problem)
        assert problem.remedy
        assert problem.path == "agent.system_configuration.forward_system_logs"


@given(st.text() | st.text(alphabet="al,- agent"))
def test_any_filter_is_accepted_and_excludes_the_agent(text: str) -> None:
    selected, _ = parse_filter(text, {"agent"})
    assert not selected.accepts("agent")


def test_entries_are_limited_by_their_own_times() -> None:
    limit = EntryLimit()
    assert sum(limit.admit(10.0) for _ in range(150)) == 100
    assert limit.report(now=False) == ""
    assert sum(limit.admit(10.5) for _ in range(150)) == 50
    assert sum(limit.admit(11.0) for _ in range(10)) == 10
    assert limit.report(now=False) == "150 entries of the journal were dropped: more than 100 in a second"
    assert limit.report(now=True) == ""


def test_a_backlog_passes_and_a_clock_set_back_does_not_block() -> None:
    limit = EntryLimit()
    assert all(limit.admit(1_000_000 + count / 50) for count in range(5000))
    assert all(limit.admit(1000 + count / 50) for count in range(5000))
    assert limit.dropped == 0


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 7))
def test_lines_are_cut_wherever_a_read_ends(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    cutter = JournalLines(10)
    result = [line for start in range(0, len(data), size) for line in cutter.cut(data[start : start + size])]
    assert result == [line if len(line) <= 10 else None for line in lines]


def test_the_place_in_the_journal_is_in_the_command() -> None:
    place = Position("s=1;i=2", 12.5)
    assert follow_command(place, by_time=False)[-1] == "--after-cursor=s=1;i=2"
    assert follow_command(place, by_time=True)[-1] == "--since=@12.500000"
    assert follow_command(None, by_time=False)[-2:] == ("--follow", "--no-tail")
