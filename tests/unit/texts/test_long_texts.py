"""Work on texts of others: whatever their length and content, an event loop is not kept for more than 20 ms."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from cloud.domain.permissions.audit import MAX_TEXT, loggable
from models.common.parsing import Parser
from runtime.parts.metrics.received import spans_of
from runtime.server.robot.arguments import shown_arguments
from runtime.server.robot.logs import MAX_LOGGER, forward
from runtime.server.robot.messages import LogEntry
from schema.decoding.report import did_you_mean, shown
from schema.errors import MachineError
from schema.secrets import MASK, Masker, mask_text, secrets_of, shortened
from telemetry.logs.loggers import MAX_MESSAGE, Logs, configure_logs
from telemetry.logs.rules import Rules, compile_pattern, pattern_matches

MOST = 0.02  # seconds of processor time on an event loop
N = 1_000_000
PIECES = (
    "a", "=", "a=", "a=b&", "eyJ-aaaaa", "eyJ-aaaaa.", '"a":', '"name":"a",', "x://a:", "x://1/@", "Bearer ", "'k': '",
    "'token': '\\", "PRIVATE KEY-----a", "\\", '"', "-", ".", " ", "@", "\n", "é",
)  # fmt: skip
HOSTILE = {
    **{f"{piece!r} repeated": piece * (N // len(piece)) for piece in PIECES},
    "a name after an equals sign": "=" + "a" * N,
    "a name before an equals sign": "a" * N + "=",
    "URLs before an at sign": "x://a:" * (N // 6) + "@",
}


@pytest.fixture(params=list(HOSTILE), ids=list(HOSTILE))
def text(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@contextmanager
def only_ours() -> Iterator[Logs]:
    """Log without the handlers of pytest, which format each message."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    logs = configure_logs()
    try:
        yield logs
    finally:
        logs.close()
        root.handlers[:] = handlers
        root.setLevel(level)


def quickly(call: Callable[[], object], most: float = MOST) -> None:
    """Require that a call uses little processor time in the better of three runs: other programs may interrupt."""
    taken = []
    for _ in range(3):
        begin = time.thread_time()
        call()
        taken.append(time.thread_time() - begin)
        if taken[-1] <= most:
            return
    raise AssertionError(f"takes {min(taken):.3f} s")


def test_masking_is_linear(text: str) -> None:
    quickly(lambda: mask_text(text), 1.0)  # not on an event loop; a quadratic expression takes minutes
    quickly(lambda: list(secrets_of({"x": text})), 1.0)


def test_arguments_in_the_audit_log_are_cut_before_they_are_masked(text: str) -> None:
    quickly(lambda: loggable({"name": text, "tags": [text] * 20}))


def test_arguments_of_operations_are_cut_before_they_are_masked(text: str) -> None:
    quickly(lambda: shown_arguments({"x": text, text: [text] * 20}))


def test_errors_of_documents_are_cut_before_they_are_masked(text: str) -> None:
    quickly(lambda: shown(text, "components.0.attributes.x"))


def test_no_similar_word_is_looked_for_in_long_texts(text: str) -> None:
    quickly(lambda: did_you_mean(text, [text[:-1], text[1:], "left"]))


def test_a_log_message_of_others_is_cut_before_it_is_masked(text: str) -> None:
    with only_ours() as logs:
        now = datetime.now(UTC)
        entry = LogEntry(level="info", message=text, time=now, logger_name=text, stack=text, fields=({text: text},))
        quickly(lambda: forward([entry]))
        (written,) = logs.ring.entries()[-1:]
        assert len(written.message) <= MAX_MESSAGE + 1
        assert len(written.logger) <= MAX_LOGGER + 20
        assert len(str(written.fields)) <= 3 * MAX_MESSAGE


def test_names_of_loggers_that_others_choose_are_not_kept() -> None:
    with only_ours() as logs:
        forward(LogEntry(level="info", message="m", logger_name=f"stranger-{n}") for n in range(50))
        assert logs.ring.entries()[-1].logger == "stranger-49"
        assert not any(name.startswith("stranger-") for name in logging.Logger.manager.loggerDict)


def test_a_span_of_others_is_cut_before_it_is_masked(text: str) -> None:
    span = {
        "trace_id": b"1" * 16, "span_id": b"1" * 8, "name": text,
        "status": {"code": "STATUS_CODE_ERROR", "message": text},
        "attributes": [{"key": f"{n}", "value": {"string_value": text}} for n in range(64)],
    }  # fmt: skip
    quickly(lambda: list(spans_of([{"scope_spans": [{"spans": [span]}]}], sender="m", masker=Masker(["secret-1"]))))


@pytest.mark.parametrize("pattern", ["*" * 24 + "x", "(a*)*b", "a*" * 100, "(rdk|rdk.a)*"])
def test_no_log_pattern_keeps_the_event_loop(pattern: str) -> None:
    rules = Rules([(compile_pattern(pattern), logging.DEBUG)] * 20)
    names = iter(f"rdk.{n}{'a' * 240}" for n in range(3))  # a new one each time, because levels are cached
    quickly(lambda: rules.level(next(names)))


def test_a_pattern_of_a_sensor_takes_linear_time(text: str) -> None:
    parser = Parser(format="regex", pattern="(?P<x>(a*)*never|(=|&|a)*never)")

    def parse() -> None:
        with pytest.raises(MachineError, match="is not matched"):
            parser.parse(text)

    quickly(parse)


def test_a_secret_at_the_cut_is_masked() -> None:
    for length in range(180, 260):
        text = "x" * length + " api_key=0123456789abcdef Bearer 0123456789abcdef"
        assert "0123" not in shortened(text, 200)
    masker = Masker(["very-secret-value"])
    for length in range(180, 201):
        assert "very" not in masker.shortened("x" * length + "very-secret-value" + "y" * 500, 200)


def test_texts_are_kept_up_to_the_limit_and_marked_beyond_it() -> None:
    assert shortened("x" * MAX_TEXT, MAX_TEXT) == "x" * MAX_TEXT
    assert shortened("x" * (MAX_TEXT + 1), MAX_TEXT) == "x" * MAX_TEXT + "…"
    assert shortened("password=" + "x" * 1000, MAX_TEXT) == f"password={MASK}…"


def test_no_filter_of_a_log_page_keeps_the_event_loop() -> None:
    pattern = compile_pattern("(" + "a*" * 100 + ")*b")
    quickly(lambda: pattern_matches(pattern, ["a" * 250] * 20))
    assert not pattern_matches(pattern, ["a" * 250])
