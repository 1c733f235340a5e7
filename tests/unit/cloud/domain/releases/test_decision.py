"""Which release a machine gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.releases.decision import Rollout, RolloutFacts, RolloutState, choose, gets, must_stop, selected, share
from cloud.domain.releases.repository import Published
from uplink.releases import Custom

ROLLOUT = Rollout("r", "machine-server", "2.0.0", 100.0)
FACTS = RolloutFacts("p", "linux/x86_64", frozenset({"beta"}), frozenset({"hall", "site"}), "1.0.0")


def published(version: str, *channels: str, platform: str = "linux/x86_64") -> Published:
    return Published(Custom("machine-server", version, platform, channels), version, 1, version)


TARGETS = (
    published("1.0.0", "stable", "dev"),
    published("1.9.0", "stable"),
    published("1.10.0", "stable"),
    published("2.0.0", "stable", "dev"),
    published("2.1.0-rc.1", "dev"),
    published("3.0.0", "stable", platform="linux/aarch64"),
    published("0.9.0"),
)
PERCENT = share("r", "p")


@pytest.mark.parametrize(
    ("channel", "rollout", "facts", "version"),
    [
        ("stable", None, FACTS, "2.0.0"),
        ("dev", None, FACTS, "2.1.0-rc.1"),
        ("0.9.0", None, FACTS, "0.9.0"),
        ("3.0.0", None, FACTS, None),
        ("stable", None, replace(FACTS, platform="linux/arm64"), "3.0.0"),
        ("stable", None, replace(FACTS, platform="linux/amd64"), "2.0.0"),
        ("stable", None, replace(FACTS, platform=""), None),
        ("stable", ROLLOUT, FACTS, "2.0.0"),
        ("stable", replace(ROLLOUT, percent=PERCENT), FACTS, "1.10.0"),
        ("stable", replace(ROLLOUT, percent=PERCENT + 0.001), FACTS, "2.0.0"),
        ("stable", replace(ROLLOUT, tags=frozenset({"beta", "x"})), FACTS, "2.0.0"),
        ("stable", replace(ROLLOUT, tags=frozenset({"alpha"})), FACTS, "1.10.0"),
        ("stable", replace(ROLLOUT, locations=frozenset({"site"})), FACTS, "2.0.0"),
        ("stable", replace(ROLLOUT, locations=frozenset({"other"})), FACTS, "1.10.0"),
        ("stable", replace(ROLLOUT, state=RolloutState.PAUSED), FACTS, "1.10.0"),
        ("stable", replace(ROLLOUT, state=RolloutState.STOPPED), FACTS, "1.10.0"),
        ("stable", replace(ROLLOUT, state=RolloutState.STOPPED), replace(FACTS, running="2.0.0"), "2.0.0"),
        ("stable", replace(ROLLOUT, state=RolloutState.FINISHED, percent=0.0001), FACTS, "2.0.0"),
        ("2.0.0", replace(ROLLOUT, state=RolloutState.PAUSED), FACTS, "2.0.0"),
        ("stable", replace(ROLLOUT, version="1.5.0", state=RolloutState.PAUSED), FACTS, "2.0.0"),
        ("latest", None, FACTS, None),
    ],
)
def test_table(channel: str, rollout: Rollout | None, facts: RolloutFacts, version: str | None) -> None:
    chosen = choose(channel, TARGETS, {} if rollout is None else {rollout.version: rollout}, facts)
    assert (None if chosen is None else chosen.custom.version) == version


@given(st.text(max_size=20), st.text(max_size=20), st.floats(0, 100), st.floats(0, 100))
def test_a_higher_percentage_keeps_all_selected_machines(rollout: str, part: str, item: float, other: float) -> None:
    lower, higher = sorted((item, other))
    facts = replace(FACTS, part=part)
    if selected(replace(ROLLOUT, id=rollout, percent=lower), facts):
        assert selected(replace(ROLLOUT, id=rollout, percent=higher), facts)


@given(st.sampled_from([state for state in RolloutState if state is not RolloutState.REVERTED]), st.floats(0, 100))
def test_a_machine_with_the_version_keeps_it(state: RolloutState, percent: float) -> None:
    assert gets(replace(ROLLOUT, state=state, percent=percent), replace(FACTS, running="2.0.0"))


def test_a_version_that_was_taken_back_is_given_to_no_machine() -> None:
    assert not gets(replace(ROLLOUT, state=RolloutState.REVERTED), replace(FACTS, running="2.0.0"))


def test_a_rollout_in_stages_includes_the_machines_that_it_has_reached() -> None:
    staged = replace(ROLLOUT, staged=True)
    assert gets(staged, replace(FACTS, included=frozenset({ROLLOUT.id})))
    assert not gets(staged, FACTS)


def test_shares_are_even_and_differ_by_rollout() -> None:
    shares = [share("r", str(number)) for number in range(2000)]
    for decile in range(10):
        assert 140 < sum(decile * 10 <= value < decile * 10 + 10 for value in shares) < 260
    assert sum(share("a", str(n)) < 10 and share("b", str(n)) < 10 for n in range(2000)) < 60


@pytest.mark.parametrize(
    ("stop_after", "state", "parts", "stops"),
    [
        (0, RolloutState.ACTIVE, ["a"], True),
        (0, RolloutState.ACTIVE, [], False),
        (2, RolloutState.ACTIVE, ["a", "b"], False),
        (2, RolloutState.ACTIVE, ["a", "b", "a"], False),
        (2, RolloutState.ACTIVE, ["a", "b", "c"], True),
        (2, RolloutState.PAUSED, ["a", "b", "c"], False),
        (None, RolloutState.ACTIVE, ["a", "b", "c"], False),
    ],
)
def test_a_rollout_stops_above_its_limit_of_failures(
    stop_after: int | None, state: RolloutState, parts: list[str], stops: bool
) -> None:
    assert must_stop(replace(ROLLOUT, stop_after=stop_after, state=state), parts) is stops
