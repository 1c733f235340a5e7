"""Start the guest once, load what every test needs, and save its state."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.hil.image.contents import WARM_IMPORTS, WARM_MODULES
from tests.hil.image.places import WORK
from tests.hil.image.steps import BuildError
from tests.hil.rig.channel import Channel, connect_channel
from tests.hil.rig.qemu import GUEST_ADDRESS
from tests.hil.rig.qmp import connect_qmp
from tests.hil.rig.vm import VirtualMachine

BOOT_LIMIT = 180.0  # seconds; about 10 on a quiet computer

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


async def save_state(image: Path) -> None:
    """Boot `image`, warm it up and write its state beside it."""
    share = WORK / "share"
    share.mkdir()
    with VirtualMachine(share, image=image, resume=False) as vm:
        try:
            with trio.fail_after(BOOT_LIMIT):
                async with trio.open_nursery() as nursery:
                    await _warm_up(await connect_channel(vm, nursery))
                    nursery.cancel_scope.cancel()  # the state is saved without a host at the other end
                async with trio.open_nursery() as nursery:
                    qmp = await connect_qmp(vm, nursery)
                    await qmp("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
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
