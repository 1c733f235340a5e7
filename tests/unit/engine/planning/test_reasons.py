"""Reasons are readable: a resource shows no class names and no complete traceback of a module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.planning.reasons import reason_of, state_of
from engine.planning.reconfigure import PlannedResource
from nursery_graph import NodeStatus, State
from runtime.parts.modules.link import ModuleLink
from runtime.parts.modules.memory import Behaviour
from runtime.server.memory import open_machine
from schema.document.modules import Module
from schema.errors import MachineError
from schema.names import API, Model, ResourceName
from tests.unit.runtime.parts.modules.support import SENSOR, entry, machine, reason, sensor, until


def node(reason: str) -> NodeStatus:
    return NodeStatus(
        name="n",
        state=State.UNHEALTHY,
        since=0.0,
        reason=reason,
        revision="",
        requires=frozenset(),
        uses=frozenset(),
        waiting_for=(),
        retry_at=None,
        runs=1,
        tasks=(),
    )


@pytest.mark.parametrize(
    ("reported", "shown"),
    [
        ("MachineError: the bus is stuck", "the bus is stuck"),
        ("Unsupported: it cannot", "it cannot"),
        ("NotConfigured: components.0: no resource 'a'", "components.0: no resource 'a'"),
        ("HalError: gone; MachineError: busy", "gone; busy"),
        ("KeyError: 'port'", "KeyError: 'port'"),
        ("waiting for it: to come", "waiting for it: to come"),
    ],
)
def test_names_of_our_errors_are_left_out(reported: str, shown: str) -> None:
    import hal.errors  # noqa: F401 - one of the classes under test

    assert reason_of(node(reported)) == shown


def test_a_retried_resource_shows_why_it_failed() -> None:
    failed = replace(node(""), state=State.CONFIGURING, failure="MachineError: /dev/ttyACM0 has vanished: plug it in")
    assert reason_of(failed) == "/dev/ttyACM0 has vanished: plug it in"
    assert state_of(failed) is State.UNHEALTHY, "until it is ready"
    assert state_of(replace(failed, failure="")) is State.CONFIGURING
    assert reason_of(replace(failed, reason="opening the port")) == "opening the port"
    assert reason_of(replace(failed, state=State.UNHEALTHY, reason="broken")) == "broken"


async def test_a_resource_tells_shortly_why_modules_are_not_ready(autojump_clock: object, tmp_path: Path) -> None:
    document = {"modules": [entry("bad"), entry("worse")], "components": [sensor("one")]}
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(document, lambda name: Behaviour(start_after=100), home) as (memory, _):
        await until(lambda: memory.machine.parts.modules is not None and len(memory.machine.parts.modules.links) == 2)
        modules = memory.machine.parts.modules
        assert modules is not None
        for link in modules.links.values():
            link.failure = f"{link.module.name} ended with status 1; its last output: {'Traceback | ' * 200}"
        said = "ended with status 1; its last output: Traceback"
        assert modules.not_ready() == {
            "internal/module/bad": f"bad {said}",
            "internal/module/worse": f"worse {said}",
        }
        memory.write({**document, "components": [sensor("one"), sensor("two")]})
        await until(lambda: f"{SENSOR}/two" in memory.machine.roster.planned)
        assert "these modules" in reason(memory, "two")
        assert len(reason(memory, "two")) < 400


def test_an_api_of_a_module_is_not_taken_for_a_misspelt_one() -> None:
    from rpc.api import APIS
    from schema.missing_models import unknown_model

    pairs = [("rdk:service:vision", "rdk:builtin:color_detector")]
    own = str(unknown_model(API.parse("acme:service:vision"), Model.parse("acme:demo:eye"), pairs, APIS))
    assert "did you mean" not in own
    assert "a module can provide it" in own
    assert "did you mean rdk:service:vision?" in str(
        unknown_model(API.parse("rdk:service:visions"), Model.parse("acme:demo:eye"), pairs, APIS)
    )


async def test_simple_names_are_quoted_in_errors() -> None:
    """A simple name from a configuration is quoted, a full name is not. Errors of remotes: tests/sim/remotes."""
    module = ModuleLink(Module(name="demo", executable_path="/x"), "modules.0", lambda: None)
    with pytest.raises(MachineError, match=r"^the module 'demo' is not ready"):
        module.connected()
    camera = {"name": "eye", "api": "rdk:component:camera", "model": "fake"}
    async with open_machine({"components": [camera]}) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match=r"^rdk:component:camera/eye has no source 'left', 'right'"):
            await memory.client().call(camera["api"], "eye", "get_images", filter_source_names=["left", "right"])


def test_a_planned_node_shows_the_fault_of_its_entry_and_otherwise_the_reason_of_the_graph() -> None:
    planned = PlannedResource(ResourceName.parse("rdk:component:motor/n"), "components.0", "fake", 1)
    assert reason_of(node("broken"), {"n": planned}) == "broken"
    faulty = replace(planned, fault=MachineError("components.0: pin 99 does not exist"))
    assert reason_of(node("broken"), {"n": faulty}) == "components.0: pin 99 does not exist"
