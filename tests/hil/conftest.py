"""Fixtures of the rig: a guest for each module of tests, resumed in under a second."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from tests.hil.image.places import BUILD, why_not_ready
from tests.hil.rig.guest import Guest, open_guest
from tests.hil.rig.plant import Plant, open_plant
from tests.hil.rig.record import Recorder
from tests.hil.rig.source import share_source
from tests.hil.rig.stuck import waits
from tests.hil.rig.vm import VirtualMachine


def why_not() -> str:
    """Why no guest can be started here; empty if one can."""
    missing = [tool for tool in ("qemu-system-x86_64", "qemu-img", "zstd") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed: run `make hil` (Debian, amd64, root)"
    return why_not_ready()


def forget_the_dead() -> None:
    """Remove what test runs left behind that were killed."""
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


@pytest.fixture(scope="module")
def vm(_source: str) -> Iterator[VirtualMachine]:
    """The virtual machine of this module: its memory and disk are as saved when the module begins."""
    with VirtualMachine(Path(_source)) as machine:
        yield machine


@pytest.fixture
def time_limit() -> float:
    """Seconds that a test with a guest may take; a module with longer ones has a fixture of its own."""
    return 360.0


async def _limit(seconds: float, vm: VirtualMachine) -> None:
    await trio.sleep(seconds)
    raise AssertionError(f"the test has not ended within {seconds:.0f} s\n{waits()}\nthe guest said:\n{vm.log()}")


@pytest.fixture
async def guest(vm: VirtualMachine, time_limit: float) -> AsyncIterator[Guest]:
    """The guest of this module. Programs and USB cables of a test end with it; files stay until the module ends."""
    async with open_guest(vm) as found:
        found.nursery.start_soon(_limit, time_limit, vm)
        try:
            yield found
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
                if not found.channel.closed:
                    await found.usb.clear()


@pytest.fixture
async def plant(guest: Guest) -> AsyncIterator[Plant]:
    """What is wired to the guest: chips, adapters, GPIO chips, USB devices. Taken away after each test."""
    made = await open_plant(guest)
    try:
        yield made
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
            if not guest.channel.closed:
                await made.reset()


@pytest.fixture
def record_recovery(request: pytest.FixtureRequest) -> Recorder:
    """`record_recovery("fault", seconds, seen="what the user reads")` for docs/reference/hardware-faults.md."""
    return Recorder(request.node.nodeid)
