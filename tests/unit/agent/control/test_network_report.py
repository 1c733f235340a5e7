"""The network in the report of an agent: bounded, and compared without what changes with the time alone."""

from __future__ import annotations

import msgspec

from agent.control.report import (
    MAX_ADDRESSES,
    MAX_BYTES,
    MAX_INTERFACES,
    MAX_UNUSED,
    AgentReport,
    ProgramReport,
    encode,
    essence,
    network_report,
)

STATEMENT = {"text": "x" * 5000, "remedy": "y" * 5000}
UNUSED = [{"network": "\udcff" * 40, "why": STATEMENT}] * 1000
EXPLANATION = {
    "interfaces": [
        {"interface": f"wlan{number}", "manager": "", "network": "home", "state": STATEMENT, "not_used": UNUSED}
        for number in range(100)
    ],
    "not_used": UNUSED,
    "next_step": "The next attempt is in 3 minutes.",
}


def test_a_report_of_many_networks_is_bounded() -> None:
    network = network_report("online", EXPLANATION, {"wlan0": ["10.0.0.1/8"] * 100})
    assert len(network.interfaces) == MAX_INTERFACES
    assert len(network.interfaces[0].addresses) == MAX_ADDRESSES
    assert len(network.interfaces[0].unused) == len(network.unused) == MAX_UNUSED
    assert len(encode(AgentReport(1.0, ProgramReport(), ProgramReport(), network=network))) <= MAX_BYTES


def test_reports_are_compared_without_the_next_step() -> None:
    network = network_report("online", {**EXPLANATION, "interfaces": [], "not_used": []}, {})
    report = AgentReport(1.0, ProgramReport(), ProgramReport(), network=network)
    later = msgspec.structs.replace(
        report, time=61.0, network=msgspec.structs.replace(network, next_step="The next attempt is in 2 minutes.")
    )
    assert essence(report) == essence(later)
    assert essence(report) != essence(
        msgspec.structs.replace(report, network=msgspec.structs.replace(network, mode="searching"))
    )
