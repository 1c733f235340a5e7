"""The files that a test leaves, and the plugin's interface: options, markers, fixtures, mistakes."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree

from tests.e2e.rig.project import LINE, Project


def test_logs_readings_graph_plots_and_properties(project: Project) -> None:
    project.test("""
        from engine.components.sensing.sensor import Sensor
        DOCUMENT = {"components": [
            {"name": "host", "api": "rdk:component:sensor", "model": "rdk:builtin:fake"},
            {"name": "pi", "api": "rdk:component:board", "model": "rdk:builtin:linux",
             "attributes": {"board": "raspberry-pi-4"}},
            {"name": "heater", "api": "rdk:component:switch", "model": "rdk:builtin:relay",
             "attributes": {"board": "pi", "pin": "GPIO17"}}]}

        @pytest.mark.machine(DOCUMENT, sample=1.0)
        async def test_first(rig):
            await rig.get(Switch, "heater").set_position(1)
            await trio.sleep(10.5)
            rig.recorder.add("my_v", 3.3)
            assert await rig.get(Switch, "heater").get_position() == 2
        """)
    done = project.run("--rig-seed", "7")
    assert done.returncode == 1
    folder = project.artefacts("test_first")
    assert "running" in (folder / "log.txt").read_text()
    assert "log of the machine" in done.stdout
    assert str(folder) in done.stdout
    graph = (folder / "graph.txt").read_text()
    assert "rdk:component:switch/heater: configuring -> ready" in graph
    stopped = [line.split()[1] for line in graph.splitlines() if "removing -> unconfigured" in line]
    assert stopped.index("rdk:component:switch/heater:") < stopped.index("rdk:component:board/pi:")
    rows = list(csv.DictReader((folder / "readings.csv").read_text().splitlines()))
    assert [row["value"] for row in rows if row["channel"] == LINE] == ["0", "1", "0"]
    assert len([row for row in rows if row["channel"] == "host a"]) == 11
    assert [row["unit"] for row in rows if row["channel"] == "my_v"] == ["V"]
    heater = (folder / "plots" / "pinctrl-bcm2711-line-17.svg").read_text()
    assert "heater on pi 11 (GPIO17)" in heater
    assert "line 17" not in heater
    assert "heater on pi 11 (GPIO17)" in (folder / "overview.svg").read_text()
    names = sorted(path.name for path in (folder / "plots").iterdir())
    assert {"my_v.svg", "heater-position.svg", "host-a.svg", "pinctrl-bcm2711-line-17.svg"} <= set(names)
    for path in [folder / "overview.svg", *(folder / "plots").iterdir()]:
        ElementTree.parse(path)
    properties = project.properties("test_first")
    assert properties == {
        "rig": "sim",
        "rig.clock": "virtual",
        "rig.seed": "7",
        "rig.artefacts": "artifacts/rig/test_it.py-test_first",
        "rig.outputs": "safe",
    }


def test_a_configuration_from_a_fixture_and_handles_in_a_fixture(project: Project) -> None:
    project.test("""
        import json
        from pathlib import Path

        @pytest.fixture
        def machine_config():
            document = json.loads((Path(__file__).parent / "machine.json").read_text())
            document["components"][1]["name"] = "other"
            return document

        @pytest.fixture
        async def relay(rig):
            relay = rig.get(Switch, "other")
            await relay.set_position(1)
            yield relay
            assert await relay.get_position() == 1  # the machine outlives the fixtures that use it

        async def test_first(rig, relay):
            assert await relay.get_position() == 1
            assert isinstance(relay, Switch)
        """)
    done = project.run()
    assert "1 passed" in done.stdout, done.stdout


def test_one_seed_gives_one_sequence_of_events(project: Project) -> None:
    project.test("""
        @pytest.mark.parametrize("turn", [1, 2])
        async def test_noise(rig, turn):
            await trio.sleep(1)
            print(f"heard {rig.world.noise('x')}")
        """)
    outputs = [project.run("-s", "--rig-seed", seed).stdout for seed in ("1", "1", "2")]
    heard = [[line for line in text.splitlines() if "heard" in line] for text in outputs]
    assert len({line.split()[-1] for line in heard[0]}) == 1
    assert heard[0] == heard[1] != heard[2]


def test_a_custom_kind_of_rig(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\npythonpath = .\nrigs =\n    mine = own:open_mine\n")
    project.write(
        "own.py",
        """
        from contextlib import asynccontextmanager
        from rig.local import open_sim

        @asynccontextmanager
        async def open_mine(setup):
            print("mine begins", setup.kind)
            async with open_sim(setup) as backend:
                yield backend
            print("mine ends")
        """,
    )
    project.test("""
        async def test_first(rig):
            assert rig.kind in ("mine", "own:open_mine")
        """)
    for kind in ("mine", "own:open_mine"):
        done = project.run("-s", "--rig", kind)
        assert f"mine begins {kind}" in done.stdout, done.stdout
        assert "mine ends" in done.stdout
        assert "1 passed" in done.stdout
        assert project.properties("test_first")["rig.clock"] == "real"


def test_a_test_that_the_rig_cannot_run_is_skipped(project: Project) -> None:
    project.write("machine.json", '{"components": []}')
    project.test("""
        async def test_fault(rig, faults):
            async with faults.no_acknowledge("i2c-1", 0x48):
                assert False

        async def test_power(rig, faults):
            async with faults.power_loss():
                assert False

        async def test_plant(rig):
            await rig.plant.get("x")

        async def test_world(rig):
            rig.world

        async def test_machine(rig):
            assert rig.machine.roster.hosts == {}
        """)
    done = project.run("--rig", "linux", "-rs")
    assert "1 passed, 4 skipped" in done.stdout, done.stdout
    assert "the rig 'linux' cannot cause a chip that does not answer" in done.stdout
    assert "the rig 'linux' has no plant model" in done.stdout


def test_errors_are_named(project: Project) -> None:
    project.test("""
        def test_sync(rig):
            pass

        @pytest.mark.machine("machine.json", plan="x")
        async def test_marker(rig):
            pass

        @pytest.mark.machine("missing.json")
        async def test_missing(rig):
            pass

        @pytest.mark.machine(plant="nothing")
        async def test_plant(rig):
            pass
        """)
    project.write("test_bare.py", "async def test_bare(rig):\n    pass\n")
    done = project.run()
    for text in (
        "test_sync uses the rig and is not async: write `async def test_sync(rig)`",
        "the marker has invalid arguments; expected machine(config, plant=None, models=(), sample=0, timeout=None)",
        "missing.json: [Errno 2] No such file or directory",
        "plant 'nothing' is not of the form module:Class",
        'no configuration: mark the test with @pytest.mark.machine("machine.json")',
    ):
        assert text in done.stdout, done.stdout
    project.test("async def test_first(rig):\n    pass\n")
    done = project.run("--rig", "nowhere")
    assert "--rig nowhere: not one of sim, linux, and not an address" in done.stdout, done.stdout
    done = project.run("--rig", "linux", "--rig-clock", "virtual")
    assert "--rig linux has no virtual clock" in done.stdout, done.stdout
    done = project.run("-p", "no:trio")
    assert "the rig needs pytest-trio" in done.stdout, done.stdout
