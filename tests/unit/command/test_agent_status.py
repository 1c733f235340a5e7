"""`machine agent status`: the lines for each state of the programs."""

import msgspec
import pytest

from agent.control.report import (
    AgentReport,
    ExitReport,
    PartReport,
    ProblemReport,
    ProgramReport,
    SystemReport,
    WaitReport,
)
from agent.update.record import QuarantinedRelease, UpdateOutcome, UpdateResult
from command.agent.show import status_lines

NOW = 1_800_000_000.0
AGENT = ProgramReport(version="1.0.0", running=True, since=NOW - 60, serving=True)


def lines(server: ProgramReport, **fields: object) -> list[str]:
    report = AgentReport(time=NOW, agent=AGENT, server=server, **fields)  # type: ignore[arg-type]
    head, *rest = status_lines(msgspec.to_builtins(report))
    assert head.startswith("machine-agent 1.0.0: serves, started ")
    return rest


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (ProgramReport(), "machine-server is not installed"),
        (ProgramReport(version="1.0.0"), "machine-server 1.0.0: does not run"),
        (
            ProgramReport(version="1.0.0", running=True, since=NOW - 60),
            "machine-server 1.0.0: runs, but does not answer requests, started 1m ago",
        ),
    ],
)
def test_a_program(server: ProgramReport, line: str) -> None:
    assert [text.replace("1m0s", "1m").replace("1 min", "1m") for text in lines(server)] == [line]


def test_a_restart_that_waits() -> None:
    server = ProgramReport(
        version="1.0.0",
        restart=WaitReport("its environment variables have changed", NOW - 7200),
        restart_waiting_for=(WaitReport("held by flash until 12:00", NOW - 3600),),
    )
    assert lines(server)[1:] == [
        "  restart waits for maintenance since 2 h: its environment variables have changed",
        "    waits for: held by flash until 12:00, since 1 h",
    ]


def test_an_update_that_waits() -> None:
    server = ProgramReport(
        version="1.0.0",
        running=True,
        since=NOW,
        serving=True,
        target="1.1.0",
        step="wait",
        step_since=NOW - 3600,
        deadline=NOW + 3600,
        waiting_for=(WaitReport("the maintenance sensor denies it", NOW - 60),),
    )
    text = "\n".join(lines(server))
    assert "update to 1.1.0: ready, waiting for maintenance" in text
    assert "waits for: the maintenance sensor denies it" in text


def test_an_update_that_failed_and_pauses() -> None:
    server = ProgramReport(
        version="1.0.0", target="1.1.0", step="download", pausing=True, deadline=NOW + 20, error="no space"
    )
    text = "\n".join(lines(server))
    assert "last error: no space" in text
    assert "next attempt in 20" in text


def test_an_update_on_trial_names_what_it_waits_for() -> None:
    reason = "it has not run for 10 minutes without a break"
    server = ProgramReport(version="1.1.0", target="1.1.0", step="trial", error=reason)
    text = "\n".join(lines(server))
    assert f"not confirmed yet: {reason}" in text
    assert "last error" not in text


def test_the_last_outcome_the_quarantine_and_the_last_crash() -> None:
    server = ProgramReport(
        version="1.0.0",
        history=(
            UpdateOutcome("1.0.0", "1.1.0", "1" * 64, UpdateResult.ROLLED_BACK, "it was started 3 times", NOW - 9, NOW),
        ),
        quarantine=(QuarantinedRelease("1" * 64, "1.1.0", "it was started 3 times", NOW),),
        exits=(ExitReport(NOW - 60, "killed by signal 9", 5.0),),
        hold_until=NOW + 60,
    )
    text = "\n".join(lines(server))
    assert "last outcome: 1.0.0 to 1.1.0 rolled back at 2027-01-15 08:00 UTC: it was started 3 times" in text
    assert "in quarantine: 1.1.0 (it was started 3 times)" in text
    assert "last crash: killed by signal 9" in text
    assert "updates are held until 2027-01-15 08:01 UTC" in text


def test_files_outside_of_the_folder_of_the_agent_are_listed() -> None:
    rest = lines(ProgramReport(), system=SystemReport(files=("/etc/a.conf", "/etc/b.conf")))
    assert rest[1:] == ["files for the system configuration: /etc/a.conf, /etc/b.conf"]


def test_upgrades_of_packages() -> None:
    waiting = WaitReport("an upgrade of packages: the door is open", NOW - 60)
    rest = lines(ProgramReport(), system=SystemReport(upgraded=NOW, outcome="2 packages upgraded", waiting=waiting))
    assert rest[1].startswith("waits for maintenance since ")
    assert rest[1].endswith(": an upgrade of packages: the door is open")
    assert rest[2] == "last upgrade of packages: 2027-01-15 08:00 UTC: 2 packages upgraded"


def test_problems_have_their_remedies_and_control_characters_are_removed() -> None:
    problem = ProblemReport("agent.debug", "is \x1b[31mwrong", "write true or false")
    rest = lines(ProgramReport(), problems=(problem,), offline="unreachable", disabled=True)
    assert rest[1:3] == [
        "machine-server is switched off by the setting disable_viam_server",
        "the cloud is unreachable: the last settings stay in force",
    ]
    assert "\x1b" not in rest[3]
    assert rest[4] == "  -> write true or false"


def test_parts_of_the_agent_that_do_not_run() -> None:
    failed = PartReport("updates", "unhealthy", "RecursionError: too deep", NOW - 60)
    waiting = PartReport("report", "unconfigured", "waiting for 'connection'")
    rest = lines(ProgramReport(), parts=(PartReport("log", "ready"), failed, waiting))
    assert rest[1].startswith("part of the agent: updates is unhealthy since ")
    assert rest[2] == "part of the agent: report is unconfigured: waiting for 'connection'"
    assert len(rest) == 3


def test_a_report_of_a_hostile_machine_does_no_harm() -> None:
    huge = 1e308
    program = {
        "running": True, "since": -huge, "step": "\x1b[2Jx", "step_since": -huge, "pausing": True, "hold_until": huge,
        "waiting_for": [{"reason": "a\nb", "since": -huge}], "restart": {"reason": "r", "since": -huge},
        "history": [{"version_to": "1", "sha256": "", "result": "odd\x07", "ended": huge}],
        "exits": [{"reason": "x", "time": -huge, "ran": huge}],
        "quarantine": [{"version": "1", "reason": "", "sha256": "", "time": huge}],
    }  # fmt: skip
    report = {
        "time": huge,
        "agent": {},
        "server": program,
        "problems": [{"path": "p", "message": "m\x00"}],
        "parts": [{"name": "\x1b", "state": "x\x07", "since": -huge}],
    }
    text = "".join(status_lines(report))
    assert text.isprintable()
    assert "an unknown time" in text


def test_the_reason_for_which_nothing_is_installed() -> None:
    server = ProgramReport(version="1.0.0", kept="version 1.1.0 is in quarantine: it did not serve")
    assert "  no other version is installed: version 1.1.0 is in quarantine: it did not serve" in lines(server)
