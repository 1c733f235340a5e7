"""Decisions about the network in the log."""

from __future__ import annotations

from structlog.testing import capture_logs

from netmgr.model.decision import NetworkDecision
from netmgr.model.network import Personal, UsableNetwork
from netmgr.model.plan import Join, StopDhcp
from netmgr.provisioning.states import Forced, ProvisioningOutcome, ProvisioningState
from netmgr.service.decisions import DecisionLog


def test_a_decision_is_logged_once_with_its_cause_and_reason() -> None:
    decisions = DecisionLog()
    outcome = ProvisioningOutcome(
        state=ProvisioningState(), decision=NetworkDecision(), reasons=("the device is offline",)
    )
    secret = UsableNetwork(
        label="lab", kind="wifi", source="cloud", ssid=b"lab", security=Personal(passphrase="hidden-words")
    )
    effects = [StopDhcp(interface="wlan0"), Join(interface="wlan0", network=secret)]
    with capture_logs() as log:
        for _ in range(3):
            decisions.note(outcome, None, [], configured=False)
        decisions.note(outcome, Forced(), effects, configured=True)
    assert [entry["log_level"] for entry in log] == ["debug", "debug"]
    assert log[0]["cause"] == "observation"
    assert log[0]["reason"] == "the device is offline"
    assert log[1]["cause"] == "Forced"
    assert log[1]["changes"] == ["StopDhcp wlan0", "Join wlan0"]
    assert "hidden-words" not in str(log)
