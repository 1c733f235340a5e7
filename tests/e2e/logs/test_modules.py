"""Messages of a module on the official SDK: their names, and patterns and levels that apply to it while it runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from tests.e2e.modules.support import SENSOR, component, machine, program, until_ready
from tests.e2e.server.process import Server

READINGS, PRINTED = "asked for readings", "this is said on stdout"


async def ask(running: Server, client: ApiClient, shown: set[str]) -> None:
    """Make the module send both messages, by RobotService.Log and by its output; wait for those in `shown`."""
    before = len(running.log())
    await client.call(SENSOR, "t", "get_readings")
    await client.call(SENSOR, "t", "do_command", command={"do": "print"})
    await until(running, before, *shown)


async def until(running: Server, before: int, *texts: str) -> None:
    with trio.fail_after(30):
        while not all(text in running.log()[before:] for text in texts):  # noqa: ASYNC110 - a file tells nothing
            await trio.sleep(0.02)


@pytest.mark.slow
async def test_patterns_and_levels_reach_a_module(tmp_path: Path) -> None:
    entry: dict[str, Any] = {"name": "demo", "executable_path": program(tmp_path / "m")}
    document: dict[str, Any] = {
        "modules": [entry],
        "components": [component("t", SENSOR, "acme:demo:thermometer")],
        "disable_log_deduplication": True,
    }
    async with machine(tmp_path, document, "-disable-mdns") as (running, client):
        await until_ready(client, "t")
        await ask(running, client, {READINGS, PRINTED})
        assert '\tmodule start\t{"activity":"module","event":"start","module":"demo","duration":' in running.log()
        line = next(line for line in running.log().splitlines() if READINGS in line)
        assert line.split("\t")[1:3] == ["INFO", "rdk.modmanager.demo.rdk:component:sensor/t"]
        assert re.fullmatch(r"sdk_module\.py:\d+", line.split("\t")[3])
        assert line.split("\t")[4:] == [READINGS]
        printed = next(line for line in running.log().splitlines() if PRINTED in line)
        assert printed.split("\t")[2] == "rdk.modmanager.demo.StdOut"
        for revision, (log, shown) in enumerate(
            (
                ([{"pattern": "rdk.components.sensor", "level": "error"}], {PRINTED}),
                ([{"pattern": "rdk.modmanager.demo.StdOut", "level": "error"}], {READINGS}),
                (
                    [{"pattern": "rdk.components.*", "level": "error"}, {"pattern": "*:sensor/t", "level": "info"}],
                    {READINGS, PRINTED},
                ),
                ([], {READINGS, PRINTED}),
            )
        ):
            network = {"bind_address": "localhost:0"}  # unchanged, so that the port stays open
            before = len(running.log())
            running.write({**document, "log": log, "network": network, "revision": f"number {revision}"})
            await until(running, before, f'"event":"complete","revision":"number {revision}"')
            await ask(running, client, shown)
        # Both ways preserve the order: a message that must not appear would have arrived before the last one.
        assert [running.log().count(f"\t{text}\n") for text in (READINGS, PRINTED)] == [4, 4]
