"""Whatever happens in a test, every output is safe before the next test begins, according to the recorded order."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.e2e.rig.project import LINE, Project, environment

ON = "await rig.get(Switch, 'heater').set_position(1)"
ENDS = {
    "passes": "pass",
    "asserts": "assert False, 'as expected'",
    "raises": "raise RuntimeError('as expected')",
    "skips": "pytest.skip('as expected')",
    "exits": "raise SystemExit(3)",
    "takes_too_long": "await trio.sleep_forever()",
    "is_too_slow": "\n".join(["with trio.fail_after(3):", "        await trio.sleep_forever()"]),
    "leaves_tasks": "trio.lowlevel.spawn_system_task(trio.sleep_forever)",
    "crashes_the_loop": "trio.lowlevel.spawn_system_task(crash); await trio.sleep_forever()",
    "loses_its_chip": "rig.hardware.lines.unplug('pinctrl-bcm2711'); await trio.sleep(5)",
    "loses_power": "async with rig.faults.power_loss():\n        raise RuntimeError('as expected')",
    "cancels": "with trio.CancelScope() as scope:\n        scope.cancel()\n        await trio.sleep_forever()",
}


def blocks(journal: list[str]) -> dict[str, list[str]]:
    """Return the lines between the beginning and the end of each test."""
    values: dict[str, list[str]] = {}
    name = ""
    for line in journal:
        if line.startswith("== "):
            assert not name, f"{line} began before {name} had ended"
            name = line.rpartition("::")[2]
            values[name] = []
        elif line.startswith("-- "):
            values[name].append(line)
            name = ""
        else:
            assert name, f"{line} between tests"
            values[name].append(line)
    return values


def test_every_outcome_of_a_test(project: Project) -> None:
    text = "async def crash():\n    raise RuntimeError('as expected')\n"
    for name, end in ENDS.items():
        text += f"\n@pytest.mark.machine(timeout=20)\nasync def test_{name}(rig):\n    {ON}\n    {end}\n"
    project.test(text)
    done = project.run()
    result = blocks(project.journal())
    assert list(result) == [f"test_{name}" for name in ENDS], done.stdout
    for name, lines in result.items():
        assert f"{LINE} 1" in lines, (name, done.stdout)
        levels = [line for line in lines if line.startswith(LINE)]
        assert levels[-1] == f"{LINE} 0", (name, lines)
        assert lines[-1] == "-- safe", (name, lines)
    assert "7 failed, 4 passed, 1 skipped" in done.stdout, done.stdout
    assert "the test took longer than 20 s; its stack:" in done.stdout
    assert "test_it.py:" in done.stdout
    assert "AssertionError: as expected" in done.stdout
    for name in ENDS:
        assert project.properties(f"test_{name}")["rig.outputs"] == "safe"


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_ctrl_c_in_a_test(project: Project, clock: str) -> None:
    project.test(f"""
        async def test_first(rig):
            {ON}
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    assert await rig.get(Switch, "heater").get_position() == 1

        async def test_second(rig):
            pass
        """)
    done = project.run("--rig-clock", clock)
    assert done.returncode == 2, done.stdout
    assert "KeyboardInterrupt" in done.stdout
    assert blocks(project.journal()) == {"test_first": [f"{LINE} 0", f"{LINE} 1", f"{LINE} 0", "-- safe"]}


def test_a_second_ctrl_c_ends_a_blocking_test(project: Project) -> None:
    project.test(f"""
        async def test_first(rig):
            {ON}
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            time.sleep(600)
        """)
    done = project.run()
    assert done.returncode == 2, done.stdout
    assert blocks(project.journal()) == {"test_first": [f"{LINE} 0", f"{LINE} 1", f"{LINE} 0", "-- safe"]}


def test_sigterm_from_outside(project: Project) -> None:
    project.test(f"""
        async def test_first(rig):
            {ON}
            print("the heater is on", flush=True)
            await trio.sleep_forever()

        async def test_second(rig):
            pass
        """)
    with subprocess.Popen(
        project.command("-s", "--rig-clock", "real"),
        cwd=project.folder,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "the heater is on" in line:
                process.send_signal(signal.SIGTERM)
    assert process.returncode == 2, said
    assert blocks(project.journal()) == {"test_first": [f"{LINE} 0", f"{LINE} 1", f"{LINE} 0", "-- safe"]}


FORGETFUL = """
from hal.ports.digital import Line, OutputSettings
from engine.resource import Attributes, model
from engine.services.generic import GenericService

@model("acme:demo:forgetful")
class Forgetful(GenericService):
    async def run(self, *, task_status):
        self.kept = self.hardware.digital_output(Line("chip", 3), OutputSettings(safe=True))
        KEPT.append(self.kept)
        output = await self.kept.__aenter__()
        output.write(False)
        task_status.started()
        await trio.sleep_forever()

KEPT = []
DOCUMENT = {"services": [{"name": "f", "api": "rdk:service:generic", "model": "acme:demo:forgetful"}]}
"""


def test_an_output_left_on_is_switched_off_and_ends_the_run(project: Project) -> None:
    project.test(
        FORGETFUL
        + """
@pytest.mark.machine(DOCUMENT, models=[Forgetful])
async def test_first(rig):
    pass

async def test_second(rig):
    pass
"""
    )
    done = project.run()
    assert done.returncode == 1, done.stdout
    [lines] = blocks(project.journal()).values()
    assert lines[:3] == ["chip line 3 1", "chip line 3 0", "chip line 3 1"]
    assert lines[3].startswith("-- UNSAFE: chip line 3 was still driven; it has been forced to its safe level")
    assert "OUTPUTS ARE NOT SAFE" in done.stdout
    assert "!! outputs are not safe after test_it.py::test_first !!" in done.stdout
    assert "chip line 3 was still driven" in project.properties("test_first")["rig.outputs"]
    assert project.properties("test_second") == {}


def test_a_machine_that_does_not_start_names_what_is_missing(project: Project) -> None:
    project.test("""
        @pytest.mark.machine({"components": [
            {"name": "a", "api": "rdk:component:switch", "model": "rdk:builtin:relay", "attributes": {"board": "pi"}},
            {"name": "pi", "api": "rdk:component:board", "model": "rdk:builtin:linux",
             "attributes": {"board": "raspberry-pi-4"}}]})
        async def test_first(rig):
            pass

        async def test_second(rig):
            pass
        """)
    done = project.run()
    assert "the machine is not ready" in done.stdout
    assert "rdk:component:switch/a is" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert blocks(project.journal())["test_first"] == ["-- safe"]


def test_a_test_that_never_started_is_not_in_the_journal(project: Project) -> None:
    project.test("""
        @pytest.fixture
        def broken():
            raise RuntimeError("as expected")

        async def test_first(rig, broken):
            pass

        async def test_second(rig):
            pass
        """)
    done = project.run()
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert list(blocks(project.journal())) == ["test_second"]
