"""SPI on the controller of an emulated Raspberry Pi 3, with a flash memory as the device: the real spidev."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hil.device_tree import changed, number, text
from tests.hil.pi.contents import DTB, PLACE, why_not_ready
from tests.hil.pi.machine import PiGuest, RaspberryPi, open_pi

CONTROLLER = "/soc/spi@7e204000"


class WithFlash(RaspberryPi):
    """A Raspberry Pi with SPI enabled, as by dtparam=spi=on, and a Winbond W25Q80BL at chip select 0."""

    def _command_line(self, initrd: Path) -> list[str]:
        tree = self.folder / DTB
        # The kernel's driver only accepts devices from its list; this one has a `compatible` that spidev accepts.
        device = {"compatible": text("rohm,dh2228fv"), "spi-max-frequency": number(10_000_000)}
        nodes = {f"{CONTROLLER}/device@{select}": {**device, "reg": number(select)} for select in (0, 1)}
        switched_on = {CONTROLLER: {"status": text("okay")}}
        tree.write_bytes(changed((PLACE / DTB).read_bytes(), switched_on, nodes))
        line = super()._command_line(initrd)
        line[line.index("-dtb") + 1] = str(tree)
        return [*line, "-device", "w25q80bl,bus=spi"]


@pytest.fixture(scope="module")
def pi() -> Iterator[RaspberryPi]:
    reason = why_not_ready()
    if reason and os.environ.get("CI"):
        pytest.fail(f"the emulated Raspberry Pi is required here: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)
    with WithFlash() as machine:
        yield machine


USE = """
import json, trio
from hal.errors import HalError
from hal.linux.spi import SpiBuses, message_limit
from hal.ports.spi import SpiSettings

async def main():
    said = {}
    buses = SpiBuses()
    async with buses.open("0", 0, SpiSettings(max_hz=1_000_000)) as flash:
        # The chip answers the identification for six bytes and then listens again (chip select is not emulated).
        answer = await flash.transfer(b"\\x9f" + bytes(6))
        said["identification"] = answer[0][1:4].hex()
        answer = await flash.transfer(b"\\x9f", bytes(6))
        said["in parts"] = [part.hex() for part in (answer[0], answer[1][:3])]
        said["lengths"] = [len(part) for part in await flash.transfer(bytes(3840), bytes(96))]
        said["limit"] = message_limit()
        try:
            await flash.transfer(bytes(4097))
        except HalError as error:
            said["too long"] = str(error)
        async with buses.open("0", 1, SpiSettings(mode=3, max_hz=500_000)) as other:
            said["other"] = len((await other.transfer(b"abc"))[0])
    for what, arguments in {
        "no such device": ("0", 2, SpiSettings()),
        "no such bus": ("7", 0, SpiSettings()),
        "bits": ("0", 0, SpiSettings(lsb_first=True)),
    }.items():
        try:
            async with buses.open(*arguments):
                said[what] = "opened"
        except HalError as error:
            said[what] = str(error)
    print(json.dumps(said))

trio.run(main)
"""


async def test_a_flash_memory_identifies_itself(pi: RaspberryPi) -> None:
    async with open_pi(pi) as guest:
        await _test(guest)


async def _test(guest: PiGuest) -> None:
    print((await guest.run("ls /dev/spi*; dmesg | grep -i spi", check=False)).output)
    said = json.loads((await guest.run(["python3", "-c", USE])).stdout)
    print(said)
    assert said["identification"] == "ef4014"  # Winbond W25Q80BL, data sheet, table 8.2.2
    assert said["in parts"] == ["00", "ef4014"]
    assert said["lengths"] == [3840, 96]
    assert said["limit"] == 4096
    assert "is more than spidev supports" in said["too long"]
    assert said["other"] == 3
    assert "use one of the existing nodes: spidev0.0, spidev0.1" in said["no such device"]
    assert "there is no /dev/spidev7.0" in said["no such bus"]
    assert "the controller does not support mode 0 LSB first" in said["bits"]
