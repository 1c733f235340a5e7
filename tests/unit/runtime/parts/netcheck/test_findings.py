"""Interpretation of findings, targets of the checks, and log entries in the background."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog.testing

from engine.part import PartContext
from runtime.parts.netcheck.background import REPEATED, NetworkChecks
from runtime.parts.netcheck.checks import gateway
from runtime.parts.netcheck.command import cloud_host, report
from runtime.parts.netcheck.finding import REMEDIES, NetcheckFinding, Outcome, failures, loss, mapping
from runtime.parts.netcheck.targets import Targets, load, split
from schema.document.machine import MachineDocument, decode_document
from schema.errors import ConfigError


def finding(check: str, outcome: Outcome, target: str = "x") -> NetcheckFinding:
    return NetcheckFinding(check, target, outcome, "detail")


@pytest.mark.parametrize(
    ("findings", "count"),
    [
        ([finding("dns", "ok"), finding("dns", "failed")], 0),
        ([finding("dns", "failed"), finding("dns", "failed")], 2),
        ([finding("resolve", "ok"), finding("resolve", "failed")], 1),
        ([finding("stun", "ok"), finding("stun-tcp", "failed")], 1),
        ([finding("ping", "note"), finding("ping", "skipped")], 0),
        ([finding("ping", "ok"), finding("ping", "failed")], 1),
        ([], 0),
    ],
)
def test_one_success_is_enough_where_servers_are_redundant(findings: list[NetcheckFinding], count: int) -> None:
    assert len(failures(findings)) == count


def test_every_check_has_a_remedy_and_only_failures_tell_it() -> None:
    assert REMEDIES.keys() == {"dns", "resolve", "stun", "stun-tcp", "ping"}
    assert finding("dns", "failed").remedy
    assert not finding("dns", "ok").remedy


@pytest.mark.parametrize(
    ("times", "gateway", "beyond", "outcome"),
    [
        ([0.001] * 10, False, False, "ok"),
        ([0.001] * 9, False, False, "ok"),
        ([0.001] * 8, False, False, "failed"),
        ([], False, True, "failed"),
        ([], True, False, "failed"),
        ([], True, True, "note"),  # many routers answer no pings
    ],
)
def test_lost_packets(times: list[float], gateway: bool, beyond: bool, outcome: str) -> None:
    finding = loss("x", 10, times, gateway=gateway, beyond=beyond)
    assert finding.outcome == outcome
    assert f"{10 - len(times)} of 10 lost" in finding.detail


def test_a_router_that_changes_ports_is_noticed() -> None:
    assert mapping([("192.0.2.1", 1000), ("192.0.2.1", 1000)]) == ""
    assert mapping([]) == ""
    assert "192.0.2.1:1000, 192.0.2.1:1001" in mapping([("192.0.2.1", 1001), ("192.0.2.1", 1000)])


def test_the_report_has_a_remedy_for_each_kind_once() -> None:
    text = report([finding("dns", "failed", "a"), finding("dns", "failed", "b"), finding("ping", "ok")])
    assert text.count(REMEDIES["dns"]) == 1
    assert "The network has problems." in text
    assert "The network works." in report([finding("dns", "ok")])
    assert "No checks are configured." in report([])


# ---- targets


def test_the_usual_targets_are_those_of_the_reference_in_number() -> None:
    usual = Targets()
    lists = (usual.dns, usual.resolve, usual.stun, usual.stun_tcp, usual.ping)
    assert [len(item) for item in lists] == [3, 4, 7, 2, 2]
    for address in (*usual.dns, *usual.stun, *usual.stun_tcp):
        assert split(address)[1] > 0


def test_the_cloud_is_asked_for_first() -> None:
    assert load({}, cloud="app.example.com").resolve[0] == "app.example.com"
    assert load({}).resolve == Targets().resolve


def test_a_file_takes_the_place_of_all(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(json.dumps({"dns": ["10.0.0.1:53"], "ping": [], "probes": 3}))
    targets = load({"MACHINE_NETWORK_CHECK": str(file)}, cloud="app.example.com")
    assert (targets.dns, targets.ping, targets.probes) == (("10.0.0.1:53",), (), 3)
    assert targets.stun == Targets().stun


def test_off_contacts_no_server() -> None:
    off = load({"MACHINE_NETWORK_CHECK": "off"}, cloud="app.example.com")
    assert [off.dns, off.resolve, off.stun, off.stun_tcp, off.ping] == [()] * 5


@pytest.mark.parametrize("text", ['{"dns": 1}', '{"dsn": []}', '{"probes": 0}', '{"probe_period_s": 0}', "{", ""])
def test_an_invalid_file_is_reported(text: str, tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(text)
    with pytest.raises(ConfigError):
        load({"MACHINE_NETWORK_CHECK": str(file)})
    with pytest.raises(ConfigError, match="cannot be read"):
        load({"MACHINE_NETWORK_CHECK": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("text", "address"), [("a:1", ("a", 1)), ("[::1]:53", ("::1", 53)), ("1.1.1.1:53", ("1.1.1.1", 53))]
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert split(text) == address


@pytest.mark.parametrize("text", ["a", "a:", "a:b", "a:-1"])
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        split(text)


@pytest.mark.parametrize(
    ("address", "host"),
    [("https://app.example.com:443", "app.example.com"), ("app.example.com:443", "app.example.com"), ("", "")],
)
def test_the_host_of_the_cloud(address: str, host: str) -> None:
    assert cloud_host(address) == host


def test_the_gateway_is_that_of_the_default_route(tmp_path: Path) -> None:
    route = tmp_path / "route"
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    route.write_text(f"{head}eth0\t0000A8C0\t00000000\t0001\neth0\t00000000\t0100A8C0\t0003\n")
    assert gateway(route) == "192.168.0.1"
    route.write_text(head)
    assert gateway(route) == ""
    assert gateway(tmp_path / "none") == ""


# ---- in the background


def part() -> NetworkChecks:
    return NetworkChecks(cast("PartContext", SimpleNamespace(environment={})))


def test_only_a_machine_of_a_cloud_has_the_node() -> None:
    assert part().nodes(MachineDocument()) == []
    managed = decode_document(
        b'{"cloud": {"id": "p", "secret": "s", "app_address": "https://app.example.com"}}'
    ).document
    assert managed is not None
    (node,) = part().nodes(managed)
    assert node.version == "app.example.com"


def test_a_failure_is_logged_when_it_begins_and_when_it_ends() -> None:
    checks = part()
    said: list[Any] = []
    rounds: list[tuple[list[NetcheckFinding], tuple[str, ...]]] = [
        ([finding("dns", "failed"), finding("resolve", "failed"), finding("ping", "ok")], ()),
        ([finding("dns", "failed"), finding("ping", "ok")], REPEATED),
        ([finding("dns", "ok"), finding("ping", "failed")], REPEATED),
        ([finding("dns", "ok"), finding("ping", "ok")], REPEATED),
    ]
    for findings, only in rounds:
        with structlog.testing.capture_logs() as logs:
            checks.note(findings, only)
        said.append([(entry["log_level"], entry["check"]) for entry in logs])
    assert [sorted(item) for item in said] == [
        [("warning", "dns"), ("warning", "resolve")],
        [],  # nothing new; `resolve` was not checked
        [("info", "dns"), ("warning", "ping")],
        [("info", "ping")],
    ]
