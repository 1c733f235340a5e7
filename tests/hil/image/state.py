"""Start the guest once, load what every test needs, save its state, and verify that it resumes from that state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from tests.hil.image.contents import WARM_IMPORTS, WARM_MODULES
from tests.hil.image.places import WORK
from tests.hil.image.steps import BuildError
from tests.hil.rig.channel import Channel, connect_channel
from tests.hil.rig.guest import open_guest
from tests.hil.rig.lines import Gone
from tests.hil.rig.qemu import GUEST_ADDRESS
from tests.hil.rig.qemu_machine import QemuMachine
from tests.hil.rig.qmp import connect_qmp

BOOT_LIMIT: Final = 240.0  # seconds; 20 to 45 on a quiet computer
PROOF_LIMIT: Final = 60.0  # seconds for a guest that resumes and runs PROOF; about 10
ATTEMPTS: Final = 3  # every test begins from this state: one that does not resume is discarded

WARM_UP = f"""
modprobe -a {" ".join(WARM_MODULES)}
ip link set lo up
ip address add {GUEST_ADDRESS}/24 dev eth0 && ip link set eth0 up
ip neighbour replace 10.0.2.2 lladdr 52:55:0a:00:02:02 dev eth0 nud permanent
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t configfs configfs /sys/kernel/config 2>/dev/null
udevadm settle
systemctl is-system-running --wait || systemctl --failed >&2
sync
"""

PROOF = """
set -e
cp -r /etc /var/tmp/proof && sync && rm -r /var/tmp/proof
for _ in 1 2 3 4; do sleep 0.5 & done
wait
python3 -c 'import trio; trio.run(trio.sleep, 0.5)'
"""
"""A script that uses timers, memory, the disk and new processes, where an incomplete state has shown errors."""


async def save_state(image: Path) -> None:
    """Boot `image`, warm it up and save its state next to it. BuildError if no attempt gives a state that resumes."""
    share = WORK / "share"
    share.mkdir()
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        (image / "base.qcow2").unlink(missing_ok=True)  # contains the guest's writes; a new one is created
        await _save(image, share)
        why = await _why_not(image, share)
        if not why:
            return
        print(f"    attempt {attempt} of {ATTEMPTS}: the saved guest did not resume: {why}", flush=True)
    raise BuildError(f"the saved guest did not resume: {why}")


async def _save(image: Path, share: Path) -> None:
    with QemuMachine(share, image=image, resume=False, threads="single") as vm:
        try:
            with trio.fail_after(BOOT_LIMIT):
                async with trio.open_nursery() as nursery:
                    await _warm_up(await connect_channel(vm, nursery))
                    nursery.cancel_scope.cancel()  # saving the state needs no host at the other end
                async with trio.open_nursery() as nursery:
                    qmp = await connect_qmp(vm, nursery)
                    await qmp("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
                    await qmp("stop")  # otherwise QEMU would track the writes of a running guest page by page
                    await qmp("migrate", uri=f"exec:zstd -q -T0 -3 > {image / 'state.zst'}")
                    await qmp.wait_event("MIGRATION", status="completed")
                    await qmp("quit")
        except trio.TooSlowError:
            raise BuildError(f"the guest did not come up within {BOOT_LIMIT:.0f} s:\n{vm.log()}") from None


async def _warm_up(channel: Channel) -> None:
    answer = await channel.ask("import", imports=WARM_IMPORTS)
    if answer["failed"]:
        raise BuildError(f"the guest's Python cannot import {', '.join(answer['failed'])}")
    process = await channel.start(["bash", "-c", WARM_UP])
    await process.wait()
    if process.stderr or process.returncode:
        print(f"    in the guest: {process.output.strip()}", flush=True)


async def _why_not(image: Path, share: Path) -> str:
    """Return what failed in a guest that resumed from the saved state; empty if nothing did."""
    why = ""
    with QemuMachine(share, image=image) as vm:
        try:
            async with open_guest(vm) as guest:
                await guest.run(PROOF, limit=PROOF_LIMIT)
        except* (Gone, AssertionError, trio.TooSlowError, trio.BrokenResourceError) as errors:
            why = f"{errors.exceptions[0]!r}\n{vm.log()}"
    return why
