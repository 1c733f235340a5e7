"""I2C adapters, SPI chip selects, PWM chips and 1-wire devices, from sysfs. Sends nothing on the buses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from hal.inventory.findings import I2cAdapter, I2cDevice, OneWireFinding, PwmFinding, SpiPlace
from hal.inventory.sysfs import MACHINE, ROOT, driver, entries, links, number, real, text

# Family codes of 1-wire devices: Maxim application note 155, table 1.
_FAMILIES: Final = {
    "10": "DS18S20 thermometer",
    "22": "DS1822 thermometer",
    "28": "DS18B20 thermometer",
    "3b": "DS1825 or MAX31850 thermocouple",
    "42": "DS28EA00 thermometer",
    "01": "DS2401 serial number",
    "26": "DS2438 battery monitor",
    "29": "DS2408 switch",
}
_SPIDEV: Final = re.compile(r"spidev(\d+)\.(\d+)")
_SPI: Final = re.compile(r"spi(\d+)\.(\d+)")


def i2c_adapters(root: Path = ROOT) -> tuple[I2cAdapter, ...]:
    """Return all adapters with the devices of kernel drivers; addresses are not probed."""
    stable = links(root, [f"{MACHINE}/i2c"])
    adapters = []
    for adapter in entries(root / "sys/bus/i2c/devices", "i2c-*"):
        index = adapter.name.removeprefix("i2c-")
        if index.isdigit():
            path = f"/dev/{adapter.name}"
            bound = tuple(_bound(adapter))
            links_to_it = stable.get(adapter.name, ())
            adapters.append(I2cAdapter(int(index), path, links_to_it, text(adapter / "name"), False, bound))
    return tuple(adapters)


def _bound(adapter: Path) -> list[I2cDevice]:
    devices = []
    for client in entries(real(adapter), f"{adapter.name.removeprefix('i2c-')}-*"):
        address = client.name.rpartition("-")[2]
        if re.fullmatch(r"[0-9a-f]{4}", address) and (name := driver(client)):
            devices.append(I2cDevice(int(address, 16), name))
    return devices


def spi_places(root: Path = ROOT) -> tuple[SpiPlace, ...]:
    """Return all chip selects that have a device node or a kernel driver."""
    stable = links(root, [f"{MACHINE}/spi"])
    places = {}
    for device in entries(root / "sys/bus/spi/devices", "spi*.*"):
        if place := _SPI.fullmatch(device.name):
            bus, select = int(place[1]), int(place[2])
            places[bus, select] = SpiPlace(bus, select, "", driver(device))
    for node in entries(root / "sys/class/spidev", "spidev*"):
        if place := _SPIDEV.fullmatch(node.name):
            bus, select = int(place[1]), int(place[2])
            places[bus, select] = SpiPlace(bus, select, f"/dev/{node.name}", "", stable.get(node.name, ()))
    return tuple(places[key] for key in sorted(places))


def pwm_chips(root: Path = ROOT) -> tuple[PwmFinding, ...]:
    """Return all PWM chips with the names of their devices, which do not depend on the probing order."""
    return tuple(
        PwmFinding(
            chip.name, real(chip / "device").name if (chip / "device").exists() else "", number(chip / "npwm") or 0
        )
        for chip in entries(root / "sys/class/pwm", "pwmchip*")
    )


def one_wire(root: Path = ROOT) -> tuple[OneWireFinding, ...]:
    """Return all devices on 1-wire buses, except the masters."""
    return tuple(
        OneWireFinding(
            device.name, f"/sys/bus/w1/devices/{device.name}", _FAMILIES.get(device.name.partition("-")[0], "")
        )
        for device in entries(root / "sys/bus/w1/devices", "*-*")
    )
