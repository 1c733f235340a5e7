"""The agent's own log: level, repeated messages and secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from agent.control.logs import apply_to_logs
from schema.agent.reading import read_settings
from schema.document.cloud import Cloud
from telemetry.logs.loggers import Logs, configure_logs, get_logger
from telemetry.logs.ring import LogRing

SECRETS = ("secret-of-the-part", "hotspot-password", "value-of-a-variable", "psk-of-the-office")


@pytest.fixture
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = configure_logs(ring=LogRing())
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


def apply(logs: Logs, document: object, *, debug: bool = False) -> None:
    settings, problems = read_settings(None, document)
    assert problems == ()
    apply_to_logs(logs, settings, Cloud(id="p1", app_address="https://cloud.example", secret=SECRETS[0]), debug=debug)


def messages(logs: Logs) -> list[str]:
    return [f"{entry.message} {entry.fields}" for entry in logs.ring.entries()]


@pytest.mark.parametrize(("setting", "option"), [(False, False), (True, False), (False, True)])
def test_messages_at_level_debug(logs: Logs, setting: bool, option: bool) -> None:
    apply(logs, {"advanced_settings": {"debug": setting}}, debug=option)
    get_logger("agent").debug("a detail")
    assert len(messages(logs)) == (setting or option)


def test_repeated_messages_are_shown_if_a_setting_says_so(logs: Logs) -> None:
    counts = []
    for disabled in (False, True, False):
        apply(logs, {"advanced_settings": {"disable_log_deduplication": disabled}})
        before = len(messages(logs))
        for _ in range(20):
            get_logger("agent").info("again")
        counts.append(sum(text == "again {}" for text in messages(logs)[before:]))
    assert counts[1] == 20
    assert max(counts[0], counts[2]) < 10


def test_secrets_of_credentials_and_settings_are_masked(logs: Logs) -> None:
    apply(
        logs,
        {
            "network_configuration": {"hotspot_password": SECRETS[1]},
            "advanced_settings": {"viam_server_env": {"HARMLESS": SECRETS[2]}},
            "additional_networks": {"office": {"type": "wifi", "ssid": "office", "psk": SECRETS[3]}},
        },
    )
    for secret in SECRETS:
        get_logger("agent").warning("machine-server wrote to standard error", line=f"x {secret} y")
    text = "\n".join(messages(logs))
    assert text.count("x *** y") == len(SECRETS)
    assert not any(secret in text for secret in SECRETS)
