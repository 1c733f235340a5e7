"""Random graphs with random misbehavior, for the property tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from nursery_graph import Node, Restart
from nursery_graph.testing import Script, Witness

PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

SEEDS = st.integers(0, 2**32 - 1)
SHORT = st.integers(0, 20).map(lambda tenths: tenths / 10)  # seconds

CALM = st.builds(Script, start=SHORT, cleanup=SHORT)
WILD = st.builds(
    Script,
    start=st.one_of(SHORT, st.just(math.inf)),
    life=st.one_of(st.just(math.inf), st.integers(1, 300).map(float)),
    cleanup=SHORT,
    deaf=st.one_of(st.just(0.0), st.just(0.0), st.integers(1, 9).map(float)),
    fails=st.booleans(),
    start_fails=st.sampled_from((False, False, True)),
    cleanup_fails=st.booleans(),
    unhealthy_after=st.one_of(st.just(math.inf), st.integers(1, 5).map(float)),
)


@dataclass(frozen=True)
class Chart:
    """The dependencies of all nodes; scripts by name, one for each run, the last one for all further runs."""

    requires: Mapping[str, frozenset[str]]
    uses: Mapping[str, frozenset[str]]
    scripts: Mapping[str, tuple[Script, ...]]

    def witness(self) -> Witness:
        runs: dict[str, int] = {}

        def script(name: str) -> Script:
            runs[name] = runs.get(name, -1) + 1
            scripts = self.scripts[name]
            return scripts[min(runs[name], len(scripts) - 1)]

        return Witness(script)

    def nodes(self, witness: Witness, **options: object) -> list[Node]:
        arguments = {"start_timeout": 5.0, "stop_timeout": 4.0, "restart": Restart(intensity=3, period=30.0), **options}
        return [
            witness.node(name, requires=self.requires[name], uses=self.uses[name], **arguments)
            for name in self.requires
        ]

    def above(self, name: str) -> set[str]:
        """Return `name` and everything that depends on it, whether it requires or uses it."""
        names = {name}
        for other in self.requires:  # in an order with dependencies first
            if (self.requires[other] | self.uses[other]) & names:
                names.add(other)
        return names


@st.composite
def charts(
    draw: st.DrawFn, scripts: st.SearchStrategy[Script] = CALM, runs: int = 1, size: int = 7, optional: bool = True
) -> Chart:
    names = [f"n{number}" for number in range(draw(st.integers(2, size)))]
    requires, uses, scripts_of = {}, {}, {}
    for number, name in enumerate(names):
        others = st.frozensets(st.sampled_from(names[:number]), max_size=3) if number else st.just(frozenset())
        requires[name] = draw(others)
        uses[name] = draw(others) - requires[name] if optional else frozenset()
        scripts_of[name] = tuple(draw(st.lists(scripts, min_size=1, max_size=runs)))
    return Chart(requires, uses, scripts_of)
