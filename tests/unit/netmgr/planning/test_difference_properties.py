"""Properties of the effects for any facts, settings and decisions: they converge, and keep a default route."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples

from netmgr.model.facts import NetworkFacts
from netmgr.model.plan import PROTOCOL, DeleteAddress, TakeOver
from netmgr.planning.desired import desired
from netmgr.planning.difference import difference
from tests.unit.netmgr.planning.situations import situations
from tests.unit.netmgr.planning.support import EVERYTHING, applied, apply


def default_routes(facts: NetworkFacts) -> set[str]:
    """Return the interfaces with a default route."""
    return {each.interface for each in facts.routes if each.destination == EVERYTHING}


@pytest.mark.slow
@examples(max_examples=200)
@given(situations())
def test_nothing_is_left_to_do_after_the_effects(situation: Any) -> None:
    settings, facts, decision, owned = situation
    plan = desired(settings, facts, decision)
    after, owned_after = applied(difference(facts, plan, owned), facts, owned)
    assert difference(after, plan, owned_after) == ()


@pytest.mark.slow
@examples(max_examples=200)
@given(situations())
def test_a_default_route_works_at_every_step(situation: Any) -> None:
    settings, facts, decision, owned = situation
    plan = desired(settings, facts, decision)
    before = default_routes(facts)
    effects = difference(facts, plan, owned)
    kept = any(each.destination == EVERYTHING for interface in plan.interfaces for each in interface.routes)
    taken = {effect.interface for effect in effects if isinstance(effect, TakeOver)}
    if not kept or not before or (len(before) == 1 and before <= taken):
        return  # the only connection is that of an interface which changes its manager
    for effect in effects:
        facts, owned = apply(effect, facts, owned)
        assert default_routes(facts), effect


@pytest.mark.slow
@examples(max_examples=200)
@given(situations())
def test_routes_and_addresses_of_others_stay(situation: Any) -> None:
    settings, facts, decision, owned = situation
    effects = difference(facts, desired(settings, facts, decision), owned)
    taken = {effect.interface for effect in effects if isinstance(effect, TakeOver)}
    # With the last address, the kernel removes all routes.
    changed = taken | {effect.interface for effect in effects if isinstance(effect, DeleteAddress)}
    after, _ = applied(effects, facts, owned)
    foreign = {each for each in facts.routes if each.protocol != PROTOCOL and each.interface not in changed}
    assert foreign <= set(after.routes)
    for old, new in zip(facts.links, after.links, strict=True):
        if old.name not in taken:
            foreign_addresses = {each.value for each in old.addresses if (old.name, each.value) not in owned}
            assert foreign_addresses <= {each.value for each in new.addresses}


@pytest.mark.slow
@examples(max_examples=200)
@given(situations())
def test_metrics_of_default_routes_differ(situation: Any) -> None:
    settings, facts, decision, _ = situation
    metrics = [interface.ra_metric for interface in desired(settings, facts, decision).interfaces]
    used = [metric for metric in metrics if metric is not None]
    assert len(used) == len(set(used))
