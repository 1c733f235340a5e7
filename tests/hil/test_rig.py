"""The rig itself: resumed quickly, reached from here, honest about faults."""

from __future__ import annotations

import time

from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine


async def test_a_guest_is_resumed_in_about_a_second(guest: Guest, vm: VirtualMachine) -> None:
    taken = time.monotonic() - vm.started
    print(f"resumed and mounted in {taken:.2f} s")
    assert taken < 5  # under one second on a quiet computer


async def test_programs_run_and_tell_their_status(guest: Guest) -> None:
    done = await guest.run("echo out; echo err >&2; exit 3", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
