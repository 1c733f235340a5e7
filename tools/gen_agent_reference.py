"""Write docs/reference/machine-agent.md from the command line, tables and units of machine-agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "machine-agent.md"

HEAD = """\
# machine-agent

<!-- Written by tools/gen_agent_reference.py; `make generate` brings it up to date. -->

`machine-agent` installs, updates and supervises machine-server. See also its [settings](agent-settings.md), the
[commands](machine-command.md) `machine agent ...`, and [the design](../design/agent.md).
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    from agent import reference
    from agent.cli import command
    from agent.layout import Layout
    from agent.supervise import state, units
    from agent.update import table

    yield HEAD
    yield f"## Options\n\n{command.help}\n"
    yield from _table("option | variable | default | meaning", map(_option, _options(command)))
    yield "\n## Environment variables\n"
    yield from _table("variable | of | meaning", ((f"`{v.name}`", v.of, v.meaning) for v in reference.VARIABLES))
    yield "\n## Exit codes\n"
    yield from _table("code | meaning", ((str(code), meaning) for code, meaning in reference.EXIT_CODES.items()))
    yield "\n## Files and folders\n"
    yield "Files below `/run` are in `run` of the root in `--dev-mode`, where there are no units.\n"
    files = ((f"`{file.path}`", file.content, file.writer, file.until) for file in reference.FILES)
    yield from _table("path | content | written by | removed by", files)
    yield "\n## Update\n\nEach program has a record of its update. `machine agent status` shows the step.\n"
    yield f"```mermaid\n{table.mermaid()}```\n"
    yield table.markdown()
    yield "## Supervision\n\nStates of machine-server:\n"
    yield f"```mermaid\n{state.mermaid()}```\n"
    yield from _table("state | meaning", ((phase.value, meaning) for phase, (meaning, _) in state.PHASES.items()))
    yield ""
    yield from _table("limit | default", _limits())
    yield "\n## Control socket\n\nOne line of JSON with `command` and `arguments`; each reply is a line of JSON.\n"
    commands = ((f"`{each.name}`", each.arguments, each.does) for each in reference.COMMANDS)
    yield from _table("command | arguments | does", commands)
    yield "\n## Units\n\nChange a unit with `systemctl edit`, which is kept by updates.\n"
    layout, credentials = Layout(), Path("/etc/machine.json")
    for name, text in (
        (units.AGENT_UNIT, units.agent_unit(layout, credentials, Path("/etc/machine-defaults.json"))),
        (units.SERVER_UNIT, units.server_unit(layout, credentials)),
    ):
        yield f"`{name}`:\n\n```ini\n{text}```\n"


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {head} |"
    yield f"|{'---|' * (head.count('|') + 1)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _options(command: click.Command) -> Iterator[click.Option]:
    return (option for option in command.params if isinstance(option, click.Option))


def _option(option: click.Option) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in option.opts)
    metavar = f" {option.metavar}" if option.metavar else ""
    default = f"`{option.default}`" if isinstance(option.default, Path) else ""
    return (names + metavar, f"`{option.envvar}`" if option.envvar else "", default, option.help or "")


def _limits() -> Iterator[tuple[str, str]]:
    from agent.supervise.health import DEFAULT_LIMITS, FIRST_DELAY, LONGEST_DELAY, STABLE
    from agent.supervise.state import KEPT_EXITS, KILL_TIME, STOP_TIME
    from agent.supervise.supervisor import ADOPTED
    from agent.supervise.units import WATCHDOG

    limits = DEFAULT_LIMITS
    yield "start timeout: kill and restart", f"{limits.start:g} s, `viam_server_start_timeout_minutes`"
    yield "first answer of a server that ran before the agent", f"{ADOPTED:g} s at least"
    yield "answer to a request", f"{limits.request:g} s, asked every {limits.interval:g} s"
    yield "requests in a row without an answer: kill and restart", str(limits.failures)
    yield "pause after a crash", f"{FIRST_DELAY:g} s, doubled after each further one up to {LONGEST_DELAY:g} s"
    yield "running time after which crashes are forgotten", f"{STABLE:g} s"
    yield "SIGTERM to SIGKILL", f"{STOP_TIME:g} s, and {KILL_TIME:g} s until the killed process must have ended"
    yield "exits that are kept", str(KEPT_EXITS)
    yield "progress of the agent itself: killed by systemd without it", f"{WATCHDOG} s"
