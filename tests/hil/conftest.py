"""Fixtures of the rig: a guest for each test module, available within two seconds."""

from __future__ import annotations

import functools
import inspect
import os
import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.hil.image.places import BUILD, why_not_ready
from tests.hil.rig.guest import Guest, open_guest
from tests.hil.rig.kinds import new_machine, why_not_uml
from tests.hil.rig.plant import Plant, open_plant
from tests.hil.rig.qemu_machine import QemuMachine
from tests.hil.rig.record import Recorder
from tests.hil.rig.source import share_source
from tests.hil.rig.stuck import waits
from tests.hil.rig.travel import TimeTravel, TravelMachine
from tests.hil.rig.vm import VirtualMachine

FAILED: Final = pytest.StashKey[bool]()
JOURNAL: Final = (
    "echo what the kernel and the journal of the guest said last:; dmesg | tail -n 60; journalctl -b -n 100"
)


def why_not() -> str:
    """Return why no guest can be started here; empty if one can be."""
    missing = [tool for tool in ("qemu-system-x86_64", "qemu-img", "zstd") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed: run `make hil` (Debian, amd64, root)"
    return why_not_ready()


def forget_the_dead() -> None:
    """Remove the leftovers of killed test runs."""
    for folder in (*BUILD.glob("run-*"), *BUILD.glob("share-*")):
        number = folder.name.split("-")[1]
        if not number.isdigit() or not Path(f"/proc/{number}").exists():
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _source() -> Iterator[str]:
    reason = why_not()
    if reason and os.environ.get("CI"):
        pytest.fail(f"the hardware rig is required here: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)
    forget_the_dead()
    folder = BUILD / f"share-{os.getpid()}"
    share_source(folder)
    yield str(folder)
    shutil.rmtree(folder, ignore_errors=True)


def pytest_report_header() -> str:
    """Report the kind of guest that the tests run in, and why."""
    reason = why_not_uml()
    return f"guests: QEMU, because {reason}" if reason else "guests: User-Mode Linux; QEMU for tests marked `qemu`"


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, _source: str) -> Iterator[VirtualMachine]:
    """Yield the machine of this module, of the kind that its marks require. Its disk is initially that of the image."""
    with new_machine(Path(_source), request.node) as machine:
        yield machine


@pytest.fixture(scope="module")
def qemu_machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield another machine of this module, in QEMU, for tests that need it among others that do not."""
    with QemuMachine(Path(_source)) as machine:
        yield machine


@pytest.fixture
def vm(request: pytest.FixtureRequest) -> VirtualMachine:
    """Return the machine of this test."""
    marked = any(mark.name == "qemu" for mark in request.node.own_markers)
    machine: VirtualMachine = request.getfixturevalue("qemu_machine" if marked and not why_not_uml() else "machine")
    return machine


@pytest.fixture
def time_limit() -> float:
    """Return the limit in seconds for a test with a guest; modules with longer tests override this fixture."""
    return 900.0  # a test of 70 s took 180 beside four other processes


async def _limit(seconds: float, vm: VirtualMachine) -> None:
    await trio.sleep(seconds)
    raise AssertionError(f"the test has not ended within {seconds:.0f} s\n{waits()}\nthe guest said:\n{vm.log()}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record a failure at once: pytest-trio ends the fixture `guest` before pytest reports it."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(test := item.obj):

        @functools.wraps(test)
        async def remembering(**arguments: Any) -> None:
            try:
                await test(**arguments)
            except BaseException:
                item.stash[FAILED] = True
                raise

        item.obj = remembering


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the console output of the guest to the report of a failed test."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    vm = arguments["time_travel"].vm if "time_travel" in arguments else arguments.get("vm")
    if report.failed and vm is not None and (said := vm.log().strip()):
        report.sections.append(("Console of the guest", said))
    return report


@pytest.fixture
async def guest(request: pytest.FixtureRequest, vm: VirtualMachine, time_limit: float) -> AsyncIterator[Guest]:
    """Yield the guest of this module. Programs and USB cables end with the test, files with the module."""
    async with open_guest(vm) as opened:
        opened.nursery.start_soon(_limit, time_limit, vm)
        try:
            yield opened
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
                if not opened.channel.closed:
                    if request.node.stash.get(FAILED, False):
                        print((await opened.run(JOURNAL, check=False)).output)
                    await opened.usb.clear()
                    for disk in opened.disks:
                        await disk.remove()


@pytest.fixture
def time_travel(_source: str) -> Iterator[TimeTravel]:
    """Simulate days in seconds: `result = await time_travel(scenario, days=2)` runs a scenario in a new guest."""
    if reason := why_not_uml():
        pytest.skip(f"time travel needs a guest of User-Mode Linux: {reason}")
    vm = TravelMachine(Path(_source))
    try:
        yield TimeTravel(vm)
    finally:
        vm.__exit__()


@pytest.fixture
async def plant(guest: Guest) -> AsyncIterator[Plant]:
    """Yield what is connected to the guest: chips, adapters, GPIO chips, USB devices. It is removed after each test."""
    opened = await open_plant(guest)
    try:
        yield opened
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
            if not guest.channel.closed:
                await opened.reset()


@pytest.fixture
def record_recovery(request: pytest.FixtureRequest) -> Recorder:
    """`record_recovery("fault", seconds, seen="message for the user")`, for docs/reference/hardware-faults.md."""
    return Recorder(request.node.nodeid)
