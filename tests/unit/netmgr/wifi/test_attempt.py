"""Events of wpa_supplicant 2.10 during attempts to join networks, and any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netmgr.model.events import Joined, JoinFailed, JoinFailure, Left
from netmgr.wifi.attempt import MAX_DETAIL, RULES, Report, WifiAttempt, step

CONNECTED = "CTRL-EVENT-CONNECTED - Connection to 02:00:00:00:01:00 completed [id=0 id_str=]"
DISCONNECTED = "CTRL-EVENT-DISCONNECTED bssid=02:00:00:00:01:00 reason=4 locally_generated=1"
NOT_FOUND = "CTRL-EVENT-NETWORK-NOT-FOUND "
REJECTED = "CTRL-EVENT-ASSOC-REJECT bssid=02:00:00:00:01:00 status_code=17"
WRONG_SAE = "CTRL-EVENT-AUTH-REJECT 02:00:00:00:01:00 auth_type=3 auth_transaction=2 status_code=15"
FULL_SAE = "CTRL-EVENT-AUTH-REJECT 02:00:00:00:01:00 auth_type=3 auth_transaction=1 status_code=17"
NO_CERTIFICATE = "CTRL-EVENT-EAP-TLS-CERT-ERROR reason=1 depth=0 subject='/CN=evil' err='self-signed certificate'"
EAP_STARTED = "CTRL-EVENT-EAP-STARTED EAP authentication started"
EAP_FAILURE = "CTRL-EVENT-EAP-FAILURE EAP authentication failed"
START = WifiAttempt(interface="wlan0", label="home")


def disabled(reason: str, ssid: str = "home") -> str:
    return f'CTRL-EVENT-SSID-TEMP-DISABLED id=0 ssid="{ssid}" auth_failures=1 duration=10 reason={reason}'


def reports(*events: str) -> list[Report]:
    attempt: WifiAttempt | None = START
    seen: list[Report] = []
    for event in events:
        if attempt is None:
            break
        attempt, report = step(attempt, event)
        if report is not None:
            seen.append(report)
    return seen


def failures(*events: str) -> list[JoinFailure]:
    return [report.failure for report in reports(*events) if isinstance(report, JoinFailed)]


@pytest.mark.parametrize(
    ("events", "failure"),
    [
        ([disabled("WRONG_KEY")], JoinFailure.WRONG_PASSWORD),
        ([WRONG_SAE] * 2, JoinFailure.WRONG_PASSWORD),
        ([FULL_SAE] * 3, JoinFailure.REJECTED),
        ([REJECTED] * 3, JoinFailure.REJECTED),
        ([disabled("CONN_FAILED")] * 2, JoinFailure.REJECTED),
        ([NOT_FOUND] * 3, JoinFailure.NOT_FOUND),
        ([EAP_FAILURE, EAP_STARTED, NO_CERTIFICATE, EAP_FAILURE], JoinFailure.SERVER_CERTIFICATE),
        ([EAP_STARTED, EAP_FAILURE], JoinFailure.CREDENTIALS),
        ([EAP_STARTED, disabled("AUTH_FAILED")], JoinFailure.CREDENTIALS),
    ],
)
def test_each_failure_has_its_reason(events: list[str], failure: JoinFailure) -> None:
    assert failures(*events[:-1]) in ([], [failure])
    assert failures(*events) == [failure]


def test_single_lost_scans_and_rejections_do_not_end_an_attempt() -> None:
    assert reports(NOT_FOUND, REJECTED, NOT_FOUND, REJECTED, CONNECTED) == [Joined(interface="wlan0", label="home")]


def test_a_lost_network_is_joined_again() -> None:
    events = [CONNECTED, DISCONNECTED, *[NOT_FOUND] * 1000, CONNECTED]
    assert [type(report) for report in reports(*events)] == [Joined, Left, Joined]


def test_a_reconnection_to_another_access_point_is_not_reported() -> None:
    assert len(reports(CONNECTED, CONNECTED)) == 1


def test_a_lost_network_with_a_new_password_is_reported_after_three_attempts() -> None:
    begin = [CONNECTED, DISCONNECTED]
    assert failures(*begin, *[disabled("WRONG_KEY")] * 2) == []
    assert failures(*begin, *[disabled("WRONG_KEY")] * 3) == [JoinFailure.WRONG_PASSWORD]


def test_an_ssid_cannot_give_a_reason() -> None:
    assert failures(disabled("CONN_FAILED", ssid='x\\" reason=WRONG_KEY ssid=')) == []


def test_details_have_codes_but_no_names() -> None:
    (report,) = reports(disabled("WRONG_KEY", ssid="secret place"))
    assert isinstance(report, JoinFailed)
    assert report.detail == "SSID-TEMP-DISABLED reason=WRONG_KEY"
    (left,) = reports(CONNECTED, DISCONNECTED)[1:]
    assert isinstance(left, Left)
    assert left.detail == "DISCONNECTED reason=4 locally_generated=1"


def test_the_end_of_a_former_attempt_does_not_count() -> None:
    assert reports(EAP_FAILURE, EAP_STARTED, CONNECTED) == [Joined(interface="wlan0", label="home")]


PREFIXES = st.sampled_from([CONNECTED, DISCONNECTED, EAP_STARTED, *(rule.prefix for rule in RULES)])


@given(st.lists(st.one_of(st.text(), st.builds("{} {}".format, PREFIXES, st.text()))))
def test_no_event_raises(events: list[str]) -> None:
    for report in reports(*events):
        if isinstance(report, JoinFailed | Left):
            assert len(report.detail) <= MAX_DETAIL
            assert report.detail.isprintable()
