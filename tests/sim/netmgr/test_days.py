"""100 days of provisioning in a neighborhood with faults: it recovers, and does nothing too often."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from netmgr.provisioning.states import HOUR, MAX_JOINS, MAX_WRONG_PASSWORD, Mode
from tests.scope import some_of
from tests.sim.netmgr.neighborhood import DAY, Life, Router, settings_of

DAYS = 100
RECOVERY = MAX_WRONG_PASSWORD + 2400.0
"""Seconds in which a device gets online with a network that works: a password counted as wrong for an hour, then the
hotspot has its retry time, and a person was active."""
LABELS = ["home", "office", "garage"]


def faults(life: Life) -> None:
    """Schedule faults that end by themselves, and people."""
    random = life.random

    def toggle(label: str, attribute: str, value: object, mean: float, seconds: float) -> None:
        usual = getattr(life.routers[label], attribute)

        def begin() -> None:
            setattr(life.routers[label], attribute, value)
            life.changed(label)
            life.after(random.expovariate(1 / seconds), end)

        def end() -> None:
            setattr(life.routers[label], attribute, usual)
            life.changed(label)
            life.after(random.expovariate(1 / mean), begin)

        life.after(random.expovariate(1 / mean), begin)

    def repeat(action: object, mean: float) -> None:
        def again() -> None:
            action()  # type: ignore[operator]
            life.after(random.expovariate(1 / mean), again)

        life.after(random.expovariate(1 / mean), again)

    for label in LABELS:
        toggle(label, "up", False, 2 * DAY, 4 * HOUR)
        toggle(label, "password", "another-password", 10 * DAY, 6 * HOUR)
        toggle(label, "internet", False, 3 * DAY, 2 * HOUR)
        toggle(label, "grants", False, 8 * DAY, 1 * HOUR)
        toggle(label, "signal", -88, 1 * DAY, 2 * HOUR)
    repeat(life.power_cut, 3 * DAY)
    repeat(lambda: life.enter(random.choice(LABELS), random.choice(["right-password", "wrong-password"])), 6 * HOUR)
    repeat(life.force, 10 * DAY)


def wants(life: Life) -> list[str]:
    """Return the labels with which the device must get online: those that it may try."""
    labels = [network.label for network in life.settings.networks]
    if life.settings.needs_internet:
        return labels
    order = sorted(
        life.settings.networks, key=lambda network: (-network.priority, network.source != "portal", network.label)
    )
    return [order[0].label]


def recovers(life: Life) -> None:
    """A network that works gets the device online within RECOVERY."""
    active = max([*life.interactions[-1:], life.reboots[-1] if life.reboots else 0.0])
    for label in wants(life):
        if life.good(label):
            since = max(life.routers[label].good_since, active, life.last_online)
            assert life.now - since < RECOVERY, (
                f"offline for {life.now - life.last_online:.0f} s although {label} works"
            )


def reboots_are_rare(life: Life) -> None:
    assert life.outcome is not None
    if not life.outcome.reboot:
        return
    assert life.settings.reboot_after_offline > 0
    assert life.now - life.last_online >= life.settings.reboot_after_offline - 1
    assert not life.interactions or life.now - life.interactions[-1] >= life.settings.user_idle
    assert life.state.ever_online


def hotspot_is_due(life: Life) -> None:
    """The hotspot does not disturb a device that is online, unless a person wants it."""
    if life.state.mode is Mode.HOTSPOT and life.was_online and not life.both:
        recent = [time for time in life.interactions if life.now - time <= life.settings.retry + 1]
        assert recent or life.now - life.last_online < 1


@pytest.mark.parametrize("seed", some_of(2, range(4), 15))
def test_days(seed: int) -> None:
    random = Random(seed)
    life = Life(random, settings_of(random, LABELS), both=seed % 2 == 1, until=DAYS * DAY)
    life.routers = {label: Router(signal=random.choice([-50, -60, -70])) for label in LABELS}
    life.checks = [recovers, reboots_are_rare, hotspot_is_due]
    faults(life)
    life.run()
    requested = sum(by_person for _, by_person in life.attempts)
    print(
        f"seed {seed}: {len(life.attempts)} attempts, {requested} of people, {len(life.hotspots)} hotspots, "
        f"{len(life.reboots)} reboots"
    )
    times = [time for time, by_person in life.attempts if not by_person]
    for first, last in zip(times, times[MAX_JOINS:], strict=False):
        assert last - first > HOUR - 1, "too many attempts in an hour"
    for first, last in pairwise(life.reboots):
        assert last - first >= life.settings.reboot_after_offline
    assert len(life.reboots) < 2 * DAYS
    assert len(life.hotspots) > 10, "the faults have no effect"
