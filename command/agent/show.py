"""The status of machine-agent as lines of text. Pure.

A report from the cloud may be that of a hostile machine: any field may be missing, and any time out of range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from support.text import words
from support.text.terminal import clean
from uplink.releases import STEP_WORDS


def status_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for a report of agent.control.report."""
    now = report["time"]
    for name, program in (("machine-agent", report.get("agent", {})), ("machine-server", report.get("server", {}))):
        yield from _program_lines(name, program, now)
    if report.get("disabled"):
        yield "machine-server is switched off by the setting disable_viam_server"
    if report.get("offline"):
        yield f"the cloud is {clean(report['offline'])}: the last settings stay in force"
    yield from _part_lines(report.get("parts", ()), now)
    yield from _system_lines(report.get("system", {}), now)
    yield from problem_lines(report.get("problems", ()))


def problem_lines(problems: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines for problems."""
    for problem in problems:
        place = f"{problem['path']}: " if problem.get("path") else ""
        yield f"problem: {clean(place + problem['message'])}"
        if problem.get("remedy"):
            yield f"  -> {clean(problem['remedy'])}"


def _part_lines(parts: Iterable[Mapping[str, Any]], now: float) -> Iterator[str]:
    """Yield lines for the parts of the agent that do not run; problems say why a part has failed."""
    for part in parts:
        if part["state"] == "ready":
            continue
        since = f" since {span(now - part['since'])}" if part.get("since") else ""
        reason = f": {clean(part['reason'])}" if part.get("reason") and not since else ""
        yield f"part of the agent: {clean(part['name'])} is {clean(part['state'])}{since}{reason}"


def _system_lines(system: Mapping[str, Any], now: float) -> Iterator[str]:
    if files := system.get("files"):
        yield f"files for the system configuration: {clean(', '.join(files))}"
    if waiting := system.get("waiting"):
        yield f"waits for maintenance since {span(now - waiting['since'])}: {clean(waiting['reason'])}"
    if system.get("upgraded"):
        moment = f"{datetime.fromtimestamp(system['upgraded'], UTC):%Y-%m-%d %H:%M} UTC"
        yield f"last upgrade of packages: {moment}: {clean(system['outcome'])}"


def _program_lines(name: str, program: Mapping[str, Any], now: float) -> Iterator[str]:
    version = clean(program.get("version", "")) or "is not installed"
    if not program.get("running"):
        state = "does not run" if program.get("version") else ""
    else:
        serving = "serves" if program.get("serving") else "runs, but does not answer requests"
        state = f"{serving}, started {span(now - program.get('since', now))} ago"
    yield f"{name} {version}{': ' + state if state else ''}"
    if program.get("step"):
        step = STEP_WORDS.get(program["step"], clean(program["step"]))
        target = clean(program.get("target", ""))
        yield f"  update to {target}: {step}, since {span(now - program.get('step_since', now))}"
        for waiting in program.get("waiting_for", ()):
            yield f"    waits for: {clean(waiting['reason'])}, since {span(now - waiting['since'])}"
        if program.get("error"):
            label = "not confirmed yet" if program["step"] == "trial" else "last error"
            yield f"    {label}: {clean(program['error'])}"
        if program.get("pausing"):
            yield f"    next attempt in {span(program.get('deadline', 0.0) - now)}"
    if restart := program.get("restart"):
        since = span(now - restart["since"])
        yield f"  restart waits for maintenance since {since}: {clean(restart['reason'])}"
        for waiting in program.get("restart_waiting_for", ()):
            yield f"    waits for: {clean(waiting['reason'])}, since {span(now - waiting['since'])}"
    if program.get("hold_until", 0) > now:
        yield f"  updates are held until {moment(program['hold_until'])}"
    if program.get("history"):
        last = program["history"][-1]
        reason = f": {clean(last['reason'])}" if last.get("reason") else ""
        result = clean(last["result"].replace("_", " "))
        versions = f"{clean(last.get('version_from', ''))} to {clean(last['version_to'])}"
        yield f"  last outcome: {versions} {result} at {moment(last['ended'])}{reason}"
    if program.get("kept"):
        yield f"  no other version is installed: {clean(program['kept'])}"
    if program.get("quarantine"):
        versions = ", ".join(f"{clean(entry['version'])} ({clean(entry['reason'])})" for entry in program["quarantine"])
        yield f"  in quarantine: {versions}"
    if program.get("exits"):
        last = program["exits"][-1]
        yield f"  last crash: {clean(last['reason'])}, {span(now - last['time'])} ago, after {span(last['ran'])}"


def moment(seconds: float) -> str:
    """Return a time of a report as text."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def span(seconds: float) -> str:
    """Return a duration as text: one that no clock can measure counts as the longest."""
    return words.span(min(max(seconds, 0.0), _LONGEST))


_LONGEST: Final = 100 * 365 * 86400.0
