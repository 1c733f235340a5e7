"""How the published status, the command line and the status page show modules."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from command.machine import facts, show
from runtime.parts.modules.memory import Behaviour
from runtime.parts.web import pieces
from tests.unit.runtime.parts.modules.support import ROBOT, entry, machine, ready, sensor, until


async def test_states_and_reasons(autojump_clock: object, tmp_path: Path) -> None:
    document = {"modules": [entry("good"), entry("bad")], "components": [sensor("one")]}

    def behave(name: str) -> Behaviour:
        return Behaviour(exit_after=0) if name == "bad" else Behaviour()

    async with machine(document, behave, {"MACHINE_HOME": str(tmp_path)}) as (memory, _):
        await until(lambda: ready(memory, "one"))
        await until(lambda: memory.machine.status().modules[1].consecutive_failures == 4)
        shown = facts.machine_of(await memory.client().call(ROBOT, "", "get_machine_status"))
        good, bad = shown.modules
        assert (good.name, good.state, good.failures, good.reason) == ("good", "ready", 0, "")
        assert (bad.name, bad.state, bad.failures) == ("bad", "unhealthy", 4)
        assert bad.reason.startswith("bad ended with status 1")
        row = show.module_row(bad, datetime.now(UTC))
        assert (row[0], row[1], row[3]) == ("bad", "unhealthy", "4")
        assert show.machine_json(shown)["modules"][1]["failures"] == 4
        status = memory.machine.status()
        assert [node.name for node in pieces.modules(status)] == ["internal/module/good", "internal/module/bad"]
        assert not {node.name for node in pieces.parts(status)} & {node.name for node in pieces.modules(status)}
        assert "bad ended with status 1" in pieces.modules(status)[1].reason
        html = {piece.id: piece for piece in pieces.overview(status)}
        assert html["modules"].facts == ("internal/module/good", "internal/module/bad")
