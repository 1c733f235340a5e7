"""Decision whether maintenance may take place."""

from __future__ import annotations

from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest

from agent.maintenance.decide import CountedLease, MaintenanceFacts, Policy, decide
from agent.maintenance.windows import MaintenanceHours, openings

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3600.0


def at(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


NOON = at("2026-06-03 12:00")  # a Wednesday
NIGHT = Policy((MaintenanceHours(time(22), time(4)),), 72 * HOUR, BERLIN)


def test_without_rules_it_is_allowed_at_once() -> None:
    verdict = decide(NOON, Policy(), MaintenanceFacts(NOON - 5))
    assert (verdict.allowed, verdict.reason, verdict.since, verdict.until) == (
        True,
        "nothing forbids it",
        NOON - 5,
        None,
    )


def test_outside_the_windows_the_next_opening_is_the_reason() -> None:
    verdict = decide(NOON, NIGHT, MaintenanceFacts(NOON))
    assert not verdict.allowed
    assert verdict.reason == "the maintenance window opens at 2026-06-03 22:00 CEST"
    assert verdict.until == at("2026-06-03 22:00")


def test_a_window_over_midnight_is_open_after_midnight_until_its_end() -> None:
    verdict = decide(at("2026-06-04 03:59"), NIGHT, MaintenanceFacts(NOON))
    assert (verdict.allowed, verdict.until) == (True, at("2026-06-04 04:00"))
    assert not decide(at("2026-06-04 04:00"), NIGHT, MaintenanceFacts(NOON)).allowed


def test_the_days_are_those_on_which_a_window_opens() -> None:
    tuesday = Policy((MaintenanceHours(time(22), time(4), frozenset({1})),), zone=BERLIN)
    assert decide(at("2026-06-03 01:00"), tuesday, MaintenanceFacts(NOON)).allowed
    verdict = decide(at("2026-06-04 01:00"), tuesday, MaintenanceFacts(NOON))
    assert (verdict.allowed, verdict.until) == (False, at("2026-06-09 22:00"))


@pytest.mark.parametrize(
    ("day", "start", "end", "opens", "closes"),
    [
        ("2026-03-29", time(2, 30), time(6), at("2026-03-29 03:30"), at("2026-03-29 06:00")),
        ("2026-03-29", time(2), time(3), at("2026-03-29 03:00"), at("2026-03-29 04:00")),
        ("2026-03-29", time(1), time(4), at("2026-03-29 01:00"), at("2026-03-29 04:00")),
        ("2026-10-25", time(1), time(2, 30), at("2026-10-25 01:00"), at("2026-10-25 02:30", fold=1)),
        ("2026-10-25", time(2, 30), time(4), at("2026-10-25 02:30"), at("2026-10-25 04:00")),
    ],
)
def test_a_change_of_clocks_moves_a_window_but_never_removes_it(
    day: str, start: time, end: time, opens: float, closes: float
) -> None:
    first = openings([MaintenanceHours(start, end)], at(f"{day} 00:00"), BERLIN)[0]
    assert (first.start, first.end) == (opens, closes)


def test_a_lease_forbids_until_it_expires() -> None:
    facts = MaintenanceFacts(
        NOON, leases=(CountedLease("flash", NOON + 60), CountedLease("backup", NOON + 30), CountedLease("old", NOON))
    )
    verdict = decide(NOON, Policy(zone=BERLIN), facts)
    assert (verdict.allowed, verdict.until) == (False, NOON + 60)
    assert verdict.reason == "held by backup, flash until 2026-06-03 12:01 CEST"
    assert decide(NOON + 60, Policy(), facts).allowed


def test_a_reason_names_only_some_leases() -> None:
    leases = tuple(CountedLease(f"lease-{number}", NOON + 60) for number in range(9))
    reason = decide(NOON, Policy(zone=BERLIN), MaintenanceFacts(NOON, leases=leases)).reason
    assert reason.startswith("held by lease-0, lease-1, lease-2, lease-3, lease-4 and 4 more until ")


def test_the_reason_of_the_server_forbids_only_while_it_runs() -> None:
    verdict = decide(NOON, Policy(), MaintenanceFacts(NOON, server_refuses="dock says docked is false"))
    assert (verdict.allowed, verdict.reason, verdict.until) == (False, "dock says docked is false", None)
    assert decide(NOON, Policy(), MaintenanceFacts(NOON, server_runs=False, server_refuses="no answer")).allowed


def test_a_lease_forbids_also_while_the_server_does_not_run() -> None:
    assert not decide(
        NOON, Policy(), MaintenanceFacts(NOON, leases=(CountedLease("flash", NOON + 1),), server_runs=False)
    ).allowed


def test_after_the_longest_deferral_it_is_allowed_whatever_forbids_it() -> None:
    facts = MaintenanceFacts(NOON, leases=(CountedLease("flash", NOON + 999 * HOUR),), server_refuses="busy")
    before = decide(NOON + 72 * HOUR - 1, NIGHT, facts)
    assert (before.allowed, before.until) == (False, NOON + 72 * HOUR)
    after = decide(NOON + 72 * HOUR, NIGHT, facts)
    assert (after.allowed, after.reason) == (True, "it has waited for the longest deferral, 72 h")


def test_a_request_of_a_person_is_allowed_whatever_forbids_it() -> None:
    facts = MaintenanceFacts(NOON, requested=True, leases=(CountedLease("flash", NOON + 9),), server_refuses="busy")
    assert decide(NOON, NIGHT, facts).allowed


@pytest.mark.parametrize("days", [frozenset[int](), frozenset({7})])
def test_a_window_with_impossible_days_is_refused(days: frozenset[int]) -> None:
    with pytest.raises(ValueError, match="days of a window"):
        MaintenanceHours(time(1), time(2), days)


def test_all_refusals_are_reasons() -> None:
    facts = MaintenanceFacts(NOON, leases=[CountedLease("flash", NOON + HOUR)], server_refuses="the arm moves")
    verdict = decide(NOON, NIGHT, facts)
    assert verdict.reasons == (
        "held by flash until 2026-06-03 13:00 CEST",
        "the arm moves",
        "the maintenance window opens at 2026-06-03 22:00 CEST",
    )
    assert verdict.reason == verdict.reasons[0]
