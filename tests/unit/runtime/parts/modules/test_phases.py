"""Resources of a module that is not ready report its progress, in the status and in errors of calls."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.parts.modules.memory import Behaviour
from runtime.parts.packages.part import Packages
from runtime.server.memory import MemoryMachine
from schema.errors import MachineError
from tests.loopback import listening
from tests.unit.runtime.parts.modules.support import SENSOR, entry, machine, process_of, ready, reason, sensor, until

DOCUMENT = {"modules": [entry()], "components": [sensor("one")]}


async def shown(memory: MemoryMachine, text: str) -> None:
    """Wait until the resource's reason has `text`; the error of a call and the module's own row must have it, too."""
    await until(lambda: f"{SENSOR}/one" in memory.machine.roster.planned and text in reason(memory, "one"))
    with pytest.raises(MachineError) as raised:
        await memory.client().call(SENSOR, "one", "get_readings")
    assert text in str(raised.value)
    (module,) = memory.machine.status().modules
    assert module.reason.startswith(text)
    (node,) = (item for item in memory.machine.status().internal if item.name == module.node)
    assert node.reason == module.reason


async def test_the_trouble_of_a_start_is_that_of_now(autojump_clock: object, tmp_path: Path) -> None:
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(DOCUMENT, lambda name: Behaviour(start_after=50, ready=False), home) as (memory, processes):
        await shown(memory, "starting")
        assert "starting)" in reason(memory, "one")
        await shown(memory, "starting: it reports that it is not ready yet")
        process_of(processes).freeze()
        await shown(memory, "starting: no answer within 3 s")
        process_of(processes).thaw()


async def test_while_a_module_starts_again_its_resources_wait_for_that(autojump_clock: object, tmp_path: Path) -> None:
    starts = iter([Behaviour(), Behaviour(start_after=50, ready=False)])
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(DOCUMENT, lambda name: next(starts), home) as (memory, _):
        await until(lambda: ready(memory, "one"))
        memory.graph.restart("internal/module/demo", "asked to")
        await until(lambda: not ready(memory, "one"))
        await shown(memory, "starting")
        assert reason(memory, "one") == "waiting for internal/module/demo: starting"
        await shown(memory, "starting: it reports that it is not ready yet")


@pytest.mark.parametrize(
    ("step", "text"), [("prepare", "unpacking its archive"), ("first_run", "running its first_run program")]
)
async def test_steps_before_the_start(
    autojump_clock: object, tmp_path: Path, step: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.parts.modules.memory import MemoryProcesses
    from runtime.programs.command import Program

    free = trio.Event()

    def waiting(original: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*arguments: Any) -> Any:
            if original.__name__ == step:
                await free.wait()
            result = await original(*arguments)
            return result and Program(result.executable, result.root, first_run=Path("/memory/first"))

        return called

    for name in ("prepare", "first_run"):
        monkeypatch.setattr(MemoryProcesses, name, staticmethod(waiting(getattr(MemoryProcesses(Behaviour), name))))
    document = {**DOCUMENT, "modules": [entry(executable_path="/memory/demo.tar.gz")]}
    async with machine(document, lambda name: Behaviour(), {"MACHINE_HOME": str(tmp_path)}) as (memory, _):
        await shown(memory, text)
        free.set()
        await until(lambda: ready(memory, "one"))


async def test_a_module_that_is_being_installed(tmp_path: Path) -> None:
    """The clock is real because packages are downloaded over a socket."""
    home = {"MACHINE_HOME": str(tmp_path)}
    free = trio.Event()

    async def slow(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await free.wait()
        await stream.send_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        await stream.aclose()

    async with machine({}, environment=home) as (memory, _), listening(slow) as port:
        around = replace(memory.configuration.context, environment=home)
        memory.machine.parts.present["packages"] = Packages(around)
        digest = hashlib.sha256(b"x").hexdigest()
        source = {"version": "1.2.3", "url": f"http://127.0.0.1:{port}/package", "sha256": digest, "size": 1}
        camera = {"name": "cam", "type": "registry", "module_id": "acme:camera", "version": "latest", "source": source}
        memory.write({"modules": [camera], "components": [sensor("one")]})
        with trio.fail_after(60):
            await shown(memory, "installing acme:camera 1.2.3")
            free.set()
            await shown(memory, "installing acme:camera 1.2.3: ")
            assert "404" in reason(memory, "one")
