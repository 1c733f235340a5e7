"""`machine agent network` and `machine agent provision`: options, and what they print."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from command.agent import network
from command.agent.group import agent

STATUS: dict[str, Any] = {
    "mode": "searching",
    "next": "The hotspot starts in 2 minutes if the device stays offline.",
    "interfaces": [
        {
            "name": "wlan0", "kind": "wifi", "manager": "machine-agent", "connected": True,
            "addresses": ["10.0.0.5/24"], "network": "home", "ssid": "home", "signal": -60, "cloud": False,
        }
    ],
    "hotspot": {"runs_on": "", "ssid": "machine-setup-rover", "password": "secret-password"},
    "device_secret": "secret-of-device",
    "problems": ["SetDns: the file cannot be written"],
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Answer requests without an agent; return them."""
    requests: list[tuple[str, dict[str, Any]]] = []
    answers: dict[str, Any] = {
        "network-status": STATUS,
        "network-scan": {"networks": [{"signal": 70, "security": "wpa2", "ssid": "home", "joined": True}]},
        "network-join": {"text": "joined", "joined": True},
        "network-forget": {"forgotten": ["console: home"]},
        "network-explain": {
            "interfaces": [
                {
                    "interface": "wlan0", "kind": "wifi", "state": {"text": "It joins 'home'."},
                    "not_used": [{"network": "office", "why": {"text": "It was not heard.", "remedy": "go there"}}],
                }
            ],
            "next_step": "Nothing: the device is online.",
        },
        "provision": {"ssid": "machine-setup-rover", "password": "abc"},
    }  # fmt: skip

    def last(layout: object, command: str, /, **arguments: Any) -> Any:
        requests.append((command, arguments))
        answer = answers[command]
        return {**answer, "hotspot": dict(answer["hotspot"])} if "hotspot" in answer else answer

    monkeypatch.setattr(network, "last", last)
    return requests


def output(*words: str, text: str = "") -> str:
    result = CliRunner().invoke(agent, words, input=text)
    assert result.exit_code == 0, result.output
    return result.output


def test_secrets_are_shown_only_on_request(asked: list[Any]) -> None:
    shown = output("network", "status")
    assert (
        "wlan0: wifi, managed by machine-agent, connected, wifi home, 10.0.0.5/24, the cloud does not answer" in shown
    )
    assert "hotspot machine-setup-rover: does not run" in shown
    assert "problem: SetDns" in shown
    assert "secret-" not in shown + output("network", "status", "--json")
    shown = output("network", "status", "--secrets")
    assert "secret-password" in shown
    assert "secret-of-device" in shown


def test_the_password_is_asked_for_or_read(asked: list[Any]) -> None:
    assert "correct horse" not in output("network", "join", "home", text="correct horse\n")
    output("network", "join", "home", "--password-stdin", "--hidden", text="correct horse\n")
    output("network", "join", "cafe", "--open")
    assert [arguments for _, arguments in asked] == [
        {"ssid": "home", "password": "correct horse", "hidden": False},
        {"ssid": "home", "password": "correct horse", "hidden": True},
        {"ssid": "cafe", "password": "", "hidden": False},
    ]


def test_answers_are_printed_for_people(asked: list[Any]) -> None:
    assert " 70 %  wpa2        home  joined" in output("network", "scan")
    assert "console: home: forgotten" in output("network", "forget", "home")
    shown = output("network", "explain")
    assert "wlan0 (wifi): It joins 'home'." in shown
    assert "  office: It was not heard. -> go there" in shown
    assert "next: Nothing" in shown
    assert "machine-setup-rover with the password abc" in output("provision", "--new-credentials")
    assert asked[-1] == ("provision", {"new_credentials": True})


def test_without_an_agent_the_exit_code_says_so() -> None:
    result = CliRunner().invoke(agent, ["--root", "/nonexistent", "network", "status"])
    assert result.exit_code == 3
