"""Disks of the rig: full, failing, hanging."""

from __future__ import annotations

import errno

import pytest
import trio

from tests.hil.rig.disk import MIB
from tests.hil.rig.guest import Guest
from tests.hil.rig.uml_machine import UmlMachine

WRITE = """
import os, sys
try:
    with open(sys.argv[1], "wb") as file:
        file.write(b"x" * int(sys.argv[2]))
        file.flush()
        os.fsync(file.fileno())
except OSError as error:
    print(error.errno)
else:
    print(0)
"""


async def write(guest: Guest, path: str, size: int = 4096) -> int:
    """Write a file and sync it to the disk; return the number of the error, or 0."""
    return int((await guest.run(["python3", "-c", WRITE, path, str(size)])).stdout)


async def test_capture_pauses_on_a_full_disk_until_it_has_space(guest: Guest) -> None:
    disk = await guest.disk("/mnt/full", 16 * MIB)
    assert await write(guest, "/mnt/full/before") == 0
    await disk.fill()
    assert await write(guest, "/mnt/full/while", 1) == errno.ENOSPC
    await disk.free()
    assert await write(guest, "/mnt/full/after") == 0
    await disk.fill(leave=64 * 1024)
    assert [await write(guest, f"/mnt/full/{size}", size * 1024) for size in (16, 128)] == [0, errno.ENOSPC]


async def test_writes_to_unused_sectors_fail(guest: Guest) -> None:
    disk = await guest.disk("/mnt/worn", 16 * MIB)
    assert await write(guest, "/mnt/worn/before") == 0
    await disk.fail(sectors=await disk.unused(), reads=False)
    assert await write(guest, "/mnt/worn/while") == errno.EIO
    assert await guest.read("/mnt/worn/before") == b"x" * 4096
    await disk.repair()
    assert await write(guest, "/mnt/worn/after") == 0, "the journal has not failed"


async def test_one_unreadable_file(guest: Guest) -> None:
    if not isinstance(guest.vm, UmlMachine):
        pytest.skip("Debian's kernel 6.1, which runs in QEMU, cannot let reads fail and writes not")
    disk = await guest.disk("/mnt/scratched", 16 * MIB)
    for name in ("good", "bad"):
        assert await write(guest, f"/mnt/scratched/{name}") == 0
    await disk.fail(sectors=await disk.sectors_of("/mnt/scratched/bad"), writes=False)
    assert await guest.read("/mnt/scratched/good") == b"x" * 4096
    with pytest.raises(OSError, match="Input/output error") as caught:
        await guest.read("/mnt/scratched/bad")
    assert caught.value.errno == errno.EIO
    await disk.repair()
    assert await guest.read("/mnt/scratched/bad") == b"x" * 4096


async def test_a_failed_disk_is_read_only_until_remounted(guest: Guest) -> None:
    disk = await guest.disk("/mnt/dead", 16 * MIB)
    assert await write(guest, "/mnt/dead/before") == 0
    await disk.fail()
    assert await write(guest, "/mnt/dead/while") == errno.EIO
    await guest.run("mkdir /mnt/dead/folder; sync -f /mnt/dead", check=False)  # a write of the journal
    await disk.repair()
    assert (await guest.run("touch /mnt/dead/after", check=False)).output.strip().endswith("Read-only file system")
    await disk.unmount()
    await disk.check()
    await disk.mount()
    assert await guest.read("/mnt/dead/before") == b"x" * 4096
    assert await write(guest, "/mnt/dead/after") == 0


async def test_a_stalled_disk_answers_later(guest: Guest) -> None:
    disk = await guest.disk("/mnt/slow", 16 * MIB)
    await disk.stall()
    writer = await guest.start(["python3", "-c", WRITE, "/mnt/slow/file", "4096"])
    with trio.fail_after(60):
        while "D" not in (await guest.run(["ps", "-o", "state=", "-p", str(writer.pid)])).stdout:
            pass
    assert writer.returncode is None
    await disk.repair()
    with trio.fail_after(60):
        assert await writer.wait() == 0
    assert writer.stdout == "0\n"


async def test_synced_data_survive_a_power_cut(guest: Guest) -> None:
    disk = await guest.disk("/mnt/cut", 16 * MIB)
    await guest.run("sync")  # the guest's own disk, which stores this one as a file
    assert await write(guest, "/mnt/cut/kept") == 0
    await guest.write("/mnt/cut/lost", b"lost")
    await guest.power_cut()
    await guest.boot()
    await disk.attach()
    assert (await guest.run("ls /mnt/cut")).stdout.split() == ["kept", "lost+found"]
