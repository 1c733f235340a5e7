"""Logging according to the specification (2.1, 2.3, 8), row by row, for all loggers of a machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.server.robot.logs import forward
from runtime.server.robot.messages import LogEntry
from schema.document.machine import MachineDocument, decode_document
from schema.names import ResourceName
from telemetry.logs import logger_names, loggers
from telemetry.logs.loggers import Logs

MOTOR = "rdk:component:motor/left"
ARM = "rdk:component:arm/right"
GIZMO = "acme:component:gizmo/one"
MOTION = "rdk:service:motion/builtin"

LOGGERS = {
    "motor": logger_names.of_resource(ResourceName.parse(MOTOR)),
    "motor/x": f"{logger_names.of_resource(MOTOR)}.driver",
    "arm": logger_names.of_resource(ARM),
    "gizmo": logger_names.of_resource(GIZMO),
    "motion": logger_names.of_resource(MOTION),
    "module": logger_names.of_module("weather"),
    "module's output": logger_names.of_module("weather") + logger_names.STDOUT_SUFFIX,
    "module's errors": logger_names.of_module("weather") + logger_names.STDERR_SUFFIX,
    "other module": logger_names.of_module("weather-2"),
    "job": logger_names.of_job("nightly"),
    "config": logger_names.CONFIG,
    "root": logger_names.ROOT,
    "library": "some.library",
}
"""Loggers of this machine; messages of modules have other names, see SENT."""

SENT = {
    "weather's own": ("weather", "weather"),
    "weather's code": ("viam/module/module", "weather"),
    "weather's sensor": ("rdk:component:sensor/outside", "weather"),
}
"""Messages by RobotService.Log: the logger's name in the message, and the module that sends it."""

ALL = {*LOGGERS, *SENT}
OF_WEATHER = {"module", "module's output", "module's errors", *SENT}
LEFT = {"motor", "motor/x"}
COMPONENTS = {"motor", "motor/x", "arm", "gizmo", "weather's sensor"}


@pytest.fixture
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = loggers.configure_logs()
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


def document(**parts: Any) -> MachineDocument:
    decoded = decode_document(json.dumps(parts).encode())
    assert decoded.document is not None
    assert decoded.problems == ()
    return decoded.document


def shown_at(logs: Logs, level: str) -> set[str]:
    """Return which of the loggers output a message of this level."""
    since = logs.ring.last
    for number, (what, name) in enumerate(LOGGERS.items()):
        getattr(logging.getLogger(name), level)("%s", f"{what} {number} {level} {since}", extra={})
    for what, (name, sender) in SENT.items():
        forward([LogEntry(level=level, message=f"{what} 0 {level} {since}", logger_name=name)], sender=sender)
    return {what for what in ALL if any(entry.message.startswith(f"{what} ") for entry in logs.ring.entries(since))}


def rule(pattern: str, level: str = "debug") -> dict[str, Any]:
    return {"log": [{"pattern": pattern, "level": level}]}


motor = {"name": "left", "api": "rdk:component:motor", "model": "fake"}
arm = {"name": "right", "api": "rdk:component:arm", "model": "fake"}
weather = {"name": "weather", "executable_path": "/opt/weather"}
sensor = {"name": "outside", "api": "rdk:component:sensor", "model": "a:b:c"}
job = {"name": "nightly", "schedule": "1h", "resource": "left", "method": "Stop"}


def own(entry: dict[str, Any], level: str) -> dict[str, Any]:
    return {**entry, "log_configuration": {"level": level}}


@pytest.mark.parametrize(
    ("parts", "level", "shown"),
    [
        # 8: default log level `info`
        ({}, "debug", set()),
        ({}, "info", ALL),
        # 2.1: `debug`: true enables debug-level logs; overrides all other log configuration
        ({"debug": True}, "debug", ALL),
        ({"debug": True, **rule("*", "error")}, "debug", ALL),
        ({"debug": True, "components": [own(motor, "error")]}, "debug", ALL),
        ({"debug": False}, "debug", set()),
        # 2.3: a pattern matches one or more resources: the shape `<root>.components.<type>`
        (rule("rdk.components.motor"), "debug", LEFT),
        (rule("rdk.components.arm"), "debug", {"arm"}),
        (rule("rdk.components.gizmo"), "debug", {"gizmo"}),  # of any namespace
        (rule("rdk.components.motor.left"), "debug", LEFT),  # only one of them
        (rule("rdk.components.motor.right"), "debug", set()),
        (rule("rdk.components.*"), "debug", COMPONENTS),
        (rule("rdk.components"), "debug", set()),  # whole names only
        (rule("rdk.components.(arm|motor)"), "debug", {"arm", "motor", "motor/x"}),  # a regular expression
        (rule(r"rdk\.components\.[am].+"), "debug", {"arm", "motor", "motor/x"}),
        (rule("rdk.components.sensor"), "debug", {"weather's sensor"}),  # also of a module
        # ... the shape `<root>.services.*`
        (rule("rdk.services.*"), "debug", {"motion"}),
        (rule("rdk.services.motion"), "debug", {"motion"}),
        # ... or a module name
        (rule("weather"), "debug", OF_WEATHER),
        (rule("weather*"), "debug", OF_WEATHER | {"other module"}),
        # and the names in log lines
        (rule("rdk.resource_manager.*:motor/*"), "debug", LEFT),
        (rule(MOTOR), "debug", LEFT),
        (rule("rdk.modmanager.weather.StdErr"), "debug", {"module's errors"}),
        (rule("rdk.job_manager.*"), "debug", {"job"}),
        (rule("rdk.config"), "debug", {"config"}),
        (rule("rdk"), "debug", {"root"}),
        (rule("some.library"), "debug", {"library"}),
        (rule("*"), "debug", ALL),
        # 2.3: level `debug`, `info`, `warn` or `error`
        (rule("rdk.config", "warn"), "info", ALL - {"config"}),
        (rule("rdk.config", "warn"), "warning", ALL),
        (rule("rdk.config", "error"), "warning", ALL - {"config"}),
        (rule("rdk.config", "error"), "error", ALL),
        (rule("rdk.config", "info"), "info", ALL),
        # 8: processed top to bottom; the last matching pattern wins
        ({"log": rule("*", "error")["log"] + rule("rdk.components.*", "info")["log"]}, "info", COMPONENTS),
        ({"log": rule("rdk.components.*", "info")["log"] + rule("*", "error")["log"]}, "info", set()),
        (
            {"log": [*rule("rdk.components.*")["log"], *rule("*.arm", "error")["log"], *rule("rdk.x")["log"]]},
            "debug",
            COMPONENTS - {"arm"},
        ),
        # 8: a resource-level `log_configuration` beats the `log` field
        ({"components": [own(motor, "debug")]}, "debug", LEFT),
        ({"components": [own(motor, "Debug")]}, "debug", LEFT),  # 2.1: one example writes it so
        ({"components": [own(motor, "debug"), own(arm, "error")], **rule("*", "warn")}, "debug", LEFT),
        ({"components": [own(motor, "error")], **rule("rdk.components.motor")}, "warning", ALL - LEFT),
        (
            {"services": [own({"api": "rdk:service:motion"}, "debug")], **rule("*", "error")},
            "debug",
            {"motion"},
        ),
        ({"jobs": [own(job, "debug")], "components": [motor]}, "debug", {"job"}),
        # 2.1: for modular resources the level is set on the module entry with `log_level`
        ({"modules": [{**weather, "log_level": "debug"}]}, "debug", {"module", *SENT}),
        ({"modules": [{**weather, "log_level": "error"}], **rule("weather")}, "warning", ALL - {"module", *SENT}),
        (
            {"modules": [{**weather, "log_level": "error"}], "components": [own(sensor, "debug")]},
            "debug",
            {"weather's sensor"},
        ),  # its resource's own level wins
    ],
)  # fmt: skip
def test_which_messages_are_shown(logs: Logs, parts: dict[str, Any], level: str, shown: set[str]) -> None:
    assert logs.apply(document(**parts)) == ()
    assert shown_at(logs, level) == shown


def test_the_option_debug_beats_everything_too(logs: Logs) -> None:
    logs.apply(document(components=[own(motor, "error")], **rule("*", "error")), debug=True)
    assert shown_at(logs, "debug") == ALL


def test_a_wrong_level_of_a_module_is_a_warning_and_nothing_more(logs: Logs) -> None:
    (warning,) = logs.apply(document(modules=[{**weather, "log_level": "loud"}]))
    assert str(warning).startswith("modules.0.log_level: 'loud' is not a level")
    assert shown_at(logs, "info") == ALL


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# 8: a log is noisy, and deduplicated, when output 3 times in the past 10 seconds.
# S shown, N a notice in its place, . left out.
@pytest.mark.parametrize(
    ("times", "verdicts"),
    [
        ([0, 1, 2], "SSS"),
        ([0, 1, 2, 3], "SSSN"),
        ([0, 1, 2, 3, 4, 9.9], "SSSN.."),
        ([0, 1, 2, 10], "SSSS"),  # the first is 10 seconds ago: two in the past 10 seconds
        ([0, 1, 2, 9.99], "SSSN"),
        ([0, 5, 9, 11, 13], "SSSSN"),
        ([0, 4, 8, 12, 16, 20, 24], "SSSSSSS"),  # never three in ten seconds
        ([0, 1, 2, 3, 10, 11, 12, 13], "SSSNSSSN"),
    ],
)
@pytest.mark.parametrize(
    "logger", ["rdk.config", logger_names.of_resource(MOTOR), logger_names.of_module("weather") + ".StdOut"]
)
def test_repetition(logger: str, times: list[float], verdicts: str) -> None:
    clock = Clock()
    before = logging.getLogger().level
    logs = loggers.configure_logs(clock=clock)
    try:
        seen = ""
        for time in times:
            clock.now = time
            since = logs.ring.last
            logging.getLogger(logger).info("again")
            said = [entry.message for entry in logs.ring.entries(since) if not entry.message.startswith("a suppressed")]
            seen += "S" if said == ["again"] else "N" if said else "."
        assert seen == verdicts
    finally:
        logs.close()
        logging.getLogger().setLevel(before)


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("another logger", 6), ("another level", 6), ("another field", 6), ("a field that does not count", 3),
        ("a debug message", 8), ("a module's errors", 8), ("a job", 8), ("activity", 8), ("switched off", 8),
    ],
)  # fmt: skip
def test_repeated_and_distinct_messages(what: str, shown: int) -> None:
    """Eight messages, of two kinds if they differ in a relevant field: three of each are output."""
    before = logging.getLogger().level
    logs = loggers.configure_logs(clock=Clock())
    logs.apply(document(**rule("rdk.debugged"), disable_log_deduplication=what == "switched off"))
    since = logs.ring.last
    try:
        for number in range(8):
            odd = number % 2
            if what == "another logger":
                loggers.get_logger("rdk.b" if odd else "rdk.a").info("again")
            elif what == "another level":
                loggers.get_logger("rdk.a").log(logging.WARNING if odd else logging.INFO, "again")
            elif what == "another field":
                loggers.get_logger("rdk.a").info("again", odd=odd)
            elif what == "a field that does not count":
                loggers.get_logger("rdk.a").info("again", log_ts=number)
            else:
                name = {
                    "a debug message": "rdk.debugged",
                    "a module's errors": logger_names.of_module("weather") + ".StdErr",
                    "a job": logger_names.of_job("nightly"),
                    "activity": logger_names.ACTIVITY,
                    "switched off": "rdk.a",
                }[what]
                loggers.get_logger(name).log(logging.DEBUG if "debug" in what else logging.INFO, "again")
        assert sum(entry.message == "again" for entry in logs.ring.entries(since)) == shown
    finally:
        logs.close()
        logging.getLogger().setLevel(before)
