"""The pipeline from a logger's call to the sinks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest
import trio
import trio.testing

from schema.document.machine import MachineDocument, decode_document
from telemetry.logs import logger_names, loggers
from telemetry.logs.entry import Entry
from telemetry.logs.loggers import Logs


class Collected:
    """A sink that stores its entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.closed = False

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        self.closed = True

    @property
    def messages(self) -> list[str]:
        return [entry.message for entry in self.entries]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def following(logs: Logs, since: int) -> list[str]:
    async with aclosing(logs.ring.changes(since)) as changes:
        return [entry.message for entry in await anext(changes)]


def document(text: str) -> MachineDocument:
    result = decode_document(text.encode()).document
    assert result is not None
    return result


@pytest.fixture
def sink() -> Collected:
    return Collected()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logs(sink: Collected, clock: Clock) -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = loggers.configure_logs([sink], clock=clock)
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


def test_a_message_carries_level_logger_caller_and_fields(logs: Logs, sink: Collected) -> None:
    loggers.get_logger("rdk.config").warning("hello %s", "you", count=3)

    (entry,) = sink.entries
    assert (entry.level_name, entry.logger, entry.message, entry.fields) == (
        "WARN",
        "rdk.config",
        "hello you",
        {"count": 3},
    )
    assert entry.caller.startswith("telemetry/test_log.py:")
    assert logs.ring.entries() == (entry,)


def test_third_parties_are_included(logs: Logs, sink: Collected) -> None:
    logging.getLogger("somebody.else").error("it %s", "broke")
    assert [(e.logger, e.message) for e in sink.entries] == [("somebody.else", "it broke")]


def test_a_third_party_that_formats_wrongly_is_still_heard(logs: Logs, sink: Collected) -> None:
    logs.handle(logging.LogRecord("somebody.else", logging.ERROR, "x.py", 1, "%d things", ("x",), None))
    assert sink.messages == ["%d things ('x',)"]


def test_default_level_is_info(logs: Logs, sink: Collected) -> None:
    logger = loggers.get_logger()
    logger.debug("quiet")
    logger.info("loud")
    assert sink.messages == ["loud"]


def test_levels_change_at_run_time(logs: Logs, sink: Collected) -> None:
    logger = loggers.get_logger("rdk.networking")
    logger.debug("1")
    assert logs.apply(document('{"log":[{"pattern":"rdk.net*","level":"Debug"}]}')) == ()
    logger.debug("2")
    loggers.get_logger("rdk.config").debug("other logger")
    logs.apply(document('{"log":[{"pattern":"rdk.*","level":"error"}]}'))
    logger.warning("3")
    logs.apply(document('{"debug":true, "log":[{"pattern":"rdk.*","level":"error"}]}'))
    logger.debug("4")
    logs.apply(document("{}"))
    logger.debug("5")
    assert sink.messages == ["2", "4"]


def test_activity_is_shown_whatever_the_levels(logs: Logs, sink: Collected) -> None:
    logs.apply(document('{"log":[{"pattern":"*","level":"error"}]}'))
    loggers.get_logger(logger_names.ACTIVITY).info("startup")
    assert sink.messages == ["startup"]


def test_secrets_are_masked_in_fields_messages_and_traces(logs: Logs, sink: Collected) -> None:
    try:
        raise ValueError("rtsp://me:hunter2@camera/")
    except ValueError:
        loggers.get_logger().exception(
            "cannot open rtsp://me:hunter2@camera/", config={"api_key": "hunter2", "id": "me"}
        )
    (entry,) = sink.entries
    assert "hunter2" not in repr(entry)
    assert entry.fields == {"config": {"api_key": "***", "id": "me"}}
    assert "ValueError: rtsp://me:***@camera/" in entry.trace


def test_fields_hold_no_objects_alive_and_never_break_the_pipeline(logs: Logs, sink: Collected) -> None:
    class Awkward:
        def __str__(self) -> str:
            raise RuntimeError("no")

    loggers.get_logger().info("x", error=ValueError("bad"), awkward=Awkward())
    assert sink.entries[0].fields == {"error": "bad", "awkward": "<Awkward>"}


def test_a_noisy_message_is_suppressed_and_summarized(logs: Logs, sink: Collected, clock: Clock) -> None:
    logger = loggers.get_logger("rdk.config")
    for _ in range(10):
        logger.info("again", **{"grpc.time_ms": clock.now})
        clock.now += 0.5
    assert sink.messages[:3] == ["again"] * 3
    assert sink.messages[3].startswith("suppressing")
    assert len(sink.entries) == 4
    clock.now = 110.0
    logger.info("other")
    assert sink.messages[4:] == ["a suppressed message was logged 7 times more: again", "other"]


@pytest.mark.parametrize("name", [logger_names.ACTIVITY, "rdk.modmanager.m.StdErr", logger_names.of_job("j")])
def test_some_loggers_are_never_suppressed(logs: Logs, sink: Collected, name: str) -> None:
    for _ in range(9):
        loggers.get_logger(name).info("again")
    assert len(sink.entries) == 9


def test_debug_is_never_suppressed_and_deduplication_can_be_switched_off(logs: Logs, sink: Collected) -> None:
    logs.apply(document('{"debug":true}'))
    for _ in range(9):
        loggers.get_logger().debug("again")
    assert len(sink.entries) == 9
    logs.apply(document('{"disable_log_deduplication":true}'))
    for _ in range(9):
        loggers.get_logger().info("again")
    assert len(sink.entries) == 18


def test_messages_that_differ_in_a_field_are_different(logs: Logs, sink: Collected) -> None:
    for number in range(9):
        loggers.get_logger().info("again", number=number)
    assert len(sink.entries) == 9


async def test_context_reaches_every_message_of_a_task_and_its_children(logs: Logs, sink: Collected) -> None:
    async def child(number: int) -> None:
        with loggers.context(operation=number):
            await trio.lowlevel.checkpoint()
            loggers.get_logger().info("child")

    with loggers.context(resource="left"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, 1)
            nursery.start_soon(child, 2)
    loggers.get_logger().info("outside")
    by_operation = sorted((e.fields.get("operation", 0), e.fields.get("resource")) for e in sink.entries)
    assert by_operation == [(0, None), (1, "left"), (2, "left")]


async def test_summaries_come_by_themselves(autojump_clock: trio.testing.MockClock, sink: Collected) -> None:
    pipeline = loggers.configure_logs([sink], clock=trio.current_time)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(pipeline.run)
            for _ in range(5):
                loggers.get_logger().info("again")
            began = trio.current_time()
            new = await following(pipeline, pipeline.ring.last)
            assert new == ["a suppressed message was logged twice more: again"]
            assert trio.current_time() - began == pytest.approx(10)
            nursery.cancel_scope.cancel()
    finally:
        pipeline.close()


async def test_a_loop_that_was_busy_past_a_summary_writes_it_late(
    mock_clock: trio.testing.MockClock, sink: Collected
) -> None:
    """The loop does not run the pipeline's own task until its deadline has passed."""
    pipeline = loggers.configure_logs([sink], clock=trio.current_time)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(pipeline.run)
            for _ in range(5):
                loggers.get_logger().info("again")
            mock_clock.jump(loggers.WINDOW + 1)
            await trio.testing.wait_all_tasks_blocked()
            assert sink.messages[-1] == "a suppressed message was logged twice more: again"
            nursery.cancel_scope.cancel()
    finally:
        pipeline.close()


async def test_a_message_that_cannot_be_written_is_harmless(
    logs: Logs, sink: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole number with too many digits cannot be converted to text, in the event loop and in another thread."""
    monkeypatch.setattr(logging, "raiseExceptions", False)  # otherwise printed on stderr
    monkeypatch.setattr(sink, "write", lambda entry: str(10**5000))
    logging.getLogger("bus").info("before")
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(logging.getLogger("bus").info, "from a thread").result()
    assert await following(logs, 1) == ["from a thread"]
    monkeypatch.undo()
    logging.getLogger("bus").info("after")
    assert sink.messages == ["after"]


async def test_messages_of_a_foreign_thread_are_handled_in_trios_thread(logs: Logs, sink: Collected) -> None:
    loggers.get_logger().info("first")  # shows the pipeline which loop is its own
    with ThreadPoolExecutor(1) as pool:
        pool.submit(logging.getLogger("bus").info, "from a thread").result()
    assert sink.messages == ["first"]
    assert await following(logs, 1) == ["from a thread"]


def test_close_flushes_and_detaches(sink: Collected, clock: Clock) -> None:
    pipeline = loggers.configure_logs([sink], clock=clock)
    for _ in range(5):
        loggers.get_logger().info("again")
    pipeline.close()
    pipeline.close()
    assert sink.messages[-1] == "a suppressed message was logged twice more: again"
    assert sink.closed
    assert pipeline not in logging.getLogger().handlers
