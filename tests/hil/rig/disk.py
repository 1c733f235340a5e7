"""Disks of the guest that can be filled and made to fail: ext4 on dm-flakey on a loop device on a file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.hil.rig.guest import Guest

MIB: Final = 1 << 20
SECTOR: Final = 512
FOLDER: Final = "/var/lib/rig-disks"
FILLING: Final = ".rig-filling"
_numbers = itertools.count(1)


class Disk:
    """A disk of `size` bytes, mounted at `path`.

    It survives a power cut as the guest's own disk does: call `attach` after the boot. It is removed after the test.
    """

    def __init__(self, guest: Guest, path: str, size: int) -> None:
        self._guest = guest
        self.path = Path(path)
        self.sectors = size // SECTOR
        self._name = f"rig-disk-{next(_numbers)}"
        self._loop = ""

    @property
    def device(self) -> str:
        """Return the block device in the guest."""
        return f"/dev/mapper/{self._name}"

    @property
    def _file(self) -> str:
        return f"{FOLDER}/{self._name}"

    async def make(self) -> None:
        """Create the file and its file system, and attach it."""
        size = self.sectors * SECTOR
        await self._guest.run(f"mkdir -p {FOLDER} && truncate -s {size} {self._file}")
        await self._guest.run(["mke2fs", "-q", "-t", "ext4", "-m", "0", self._file])
        await self.attach()

    async def attach(self, options: str = "") -> None:
        """Create the device and mount it, after `make` or a boot."""
        await self._guest.run("modprobe -a loop dm-mod dm-flakey")
        self._loop = (await self._guest.run(["losetup", "--find", "--show", self._file])).stdout.strip()
        await self._guest.run(["dmsetup", "create", self._name], input=self._table([]))
        await self.mount(options)

    async def mount(self, options: str = "") -> None:
        """Mount it, for example with the option `ro`."""
        await self._guest.run(["mkdir", "-p", str(self.path)])
        await self._guest.run(["mount", "-o", options or "defaults", self.device, str(self.path)])

    async def unmount(self) -> None:
        """Unmount it; AssertionError while programs use it."""
        await self._guest.run(["umount", str(self.path)])

    async def check(self) -> None:
        """Repair the unmounted file system, as a boot after a disk failure does."""
        done = await self._guest.run(["e2fsck", "-fy", self.device], check=False)
        assert done.returncode in (0, 1), done.output

    async def fill(self, leave: int = 0) -> None:
        """Fill it, except for `leave` bytes: further writes fail with ENOSPC, including those of root."""
        file = self.path / FILLING
        # The journal frees deleted blocks later, so the last blocks are filled in the second round.
        await self._guest.run(
            f"for size in 64k 1k 1k; do dd if=/dev/zero bs=$size status=none >> {file}; sync -f {file}; done; "
            f"truncate -s -{leave} {file} && sync -f {file}"
        )

    async def free(self) -> None:
        """Undo `fill`."""
        await self._guest.run(f"rm -f {self.path / FILLING} && sync -f {self.path}")

    async def fail(self, *, reads: bool = True, writes: bool = True, sectors: Iterable[range] | None = None) -> None:
        """Make reads, writes or both fail with EIO, everywhere or only in ranges of sectors.

        Data that programs have written and the kernel has not is lost where writes fail. Cached data is not read. A
        failed write of the journal makes ext4 read-only until it is mounted again. `writes=False` needs kernel 6.6 or
        newer, as in guests of User-Mode Linux.
        """
        await self._load(self._table(sectors if sectors is not None else [range(self.sectors)], _fault(reads, writes)))
        await self._guest.run("echo 3 > /proc/sys/vm/drop_caches")

    async def stall(self) -> None:
        """Make it answer nothing until `repair`: programs that read from it or wait for it hang."""
        await self._guest.run(["dmsetup", "suspend", "--nolockfs", "--noflush", self._name])

    async def repair(self) -> None:
        """Undo `fail` and `stall`. The file system is not repaired: see `check`."""
        await self._load(self._table([]))

    async def sectors_of(self, path: Path | str) -> list[range]:
        """Return the sectors of a file's content."""
        listed = (await self._guest.run(["filefrag", "-s", "-v", "-b512", str(path)])).stdout
        extents = re.findall(r"^ *\d+: +\d+\.\. *\d+: +(\d+)\.\. *(\d+):", listed, re.MULTILINE)
        return [range(int(first), int(last) + 1) for first, last in extents]

    async def unused(self) -> list[range]:
        """Return the unused sectors: new data goes there, while journal and names do not."""
        await self._guest.run(["sync", "-f", str(self.path)])
        listed = (await self._guest.run(["dumpe2fs", self.device])).stdout
        per_block = int(re.findall(r"^Block size: +(\d+)", listed, re.MULTILINE)[0]) // SECTOR
        ranges = re.findall(r"(\d+)(?:-(\d+))?", " ".join(re.findall(r"^  Free blocks: (.*)$", listed, re.MULTILINE)))
        return [range(int(first) * per_block, (int(last or first) + 1) * per_block) for first, last in ranges]

    async def remove(self) -> None:
        """Remove it, whatever its state."""
        words = f"dmsetup resume {self._name}; umount -l {self.path}; dmsetup remove --deferred {self._name}; "
        await self._guest.run(f"{words} losetup -d {self._loop}; rm -f {self._file}", check=False)

    async def _load(self, table: str) -> None:
        await self._guest.run(["dmsetup", "load", self._name], input=table)
        await self._guest.run(["dmsetup", "suspend", "--nolockfs", "--noflush", self._name])
        await self._guest.run(["dmsetup", "resume", self._name])

    def _table(self, failing: Iterable[range], fault: str = "") -> str:
        """Return the table for dmsetup(8)."""
        lines = []
        for first, last, fails in _parts(failing, self.sectors):
            kind = f"flakey {self._loop} {first} 0 3600 {fault}" if fails else f"linear {self._loop} {first}"
            lines.append(f"{first} {last - first} {kind}")
        return "".join(f"{line}\n" for line in lines)


def _fault(reads: bool, writes: bool) -> str:
    assert reads or writes, "nothing would fail"
    return "" if reads and writes else f"1 error_{'reads' if reads else 'writes'}"


def _parts(failing: Iterable[range], sectors: int) -> Iterator[tuple[int, int, bool]]:
    """Split a disk into parts (first sector, sector after the last, whether it fails)."""
    at = 0
    for part in sorted(failing, key=lambda one: one.start):
        if at < part.start:
            yield at, part.start, False
        yield max(at, part.start), part.stop, True
        at = part.stop
    if at < sectors:
        yield at, sectors, False
