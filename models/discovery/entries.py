"""Configuration entries of built-in models for the findings of an inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from engine import Discovery
from hal.inventory import Inventory, SerialFinding, UsbFinding
from models.chips.common.addresses import address_count

_RECEIVERS: Final = {"1546"}
"""USB vendors of satellite receivers with a serial port: u-blox (usb.org, vendor list)."""
_UNSAFE_MODELS: Final = {"at24"}
"""Models with an attribute that cannot be detected and does harm if it is wrong: the size."""
_BUILTIN: Final = "rdk:builtin:"


@dataclass(frozen=True, slots=True)
class SuggestedEntry:
    """An entry, the device it is for, and whether another entry is more likely for the same device."""

    discovery: Discovery
    subject: str
    alternative: bool = False

    def document(self) -> dict[str, Any]:
        """Return the entry as in `components` of the machine's document."""
        discovery = self.discovery
        return {
            "name": discovery.name,
            "api": discovery.api,
            "model": discovery.model,
            "attributes": dict(discovery.attributes),
        }


def discovered_entries(inventory: Inventory, models: Mapping[tuple[str, str], str]) -> tuple[SuggestedEntry, ...]:
    """Return entries for the findings that `models` (`(API, model)`) support, most likely first, with unique names."""
    apis: dict[str, list[str]] = {}
    for api, model in models:
        apis.setdefault(model, []).append(api)
    taken: set[str] = set()
    return tuple(_named(entry, taken) for entry in _all(inventory, apis))


def _all(inventory: Inventory, apis: Mapping[str, list[str]]) -> Iterator[SuggestedEntry]:
    if inventory.gpio or inventory.board.name != "generic":
        yield from _entry(apis, "board", "linux", "local", {}, inventory.board.title)
    yield from _i2c(inventory, apis)
    for port in inventory.serial:
        if port.vendor:  # a built-in port may have no device connected
            yield from _serial(port, apis)
    for device in inventory.usb:
        if not device.drivers:
            yield from _entry(apis, "generic", "usb", "usb", _usb(device), f"USB {device.vendor}:{device.product}")
    for camera in inventory.cameras:
        yield from _entry(apis, "camera", "webcam", "camera", {"video_path": camera.best}, camera.best)
    for pad in inventory.inputs:
        if pad.kind == "gamepad":
            yield from _entry(apis, "input_controller", "gamepad", "gamepad", {"path": pad.best}, pad.best)


def _i2c(inventory: Inventory, apis: Mapping[str, list[str]]) -> Iterator[SuggestedEntry]:
    for adapter in inventory.i2c:
        for device in adapter.devices:
            if device.driver:
                continue
            address = f"0x{device.address:02x}"
            attributes = {"i2c_bus": adapter.best, "i2c_address": address}
            first = True
            # A chip with few possible addresses is the more likely match.
            for chip in sorted(device.likely, key=address_count):
                model = chip.lower()
                if model in _UNSAFE_MODELS:
                    first = False
                    continue
                for api in apis.get(f"{_BUILTIN}{model}", ()):
                    discovery = Discovery(f"{model}-{device.address:02x}", api, f"{_BUILTIN}{model}", attributes)
                    yield SuggestedEntry(discovery, f"{address} on {adapter.path}", not first)
                    first = False


def _serial(port: SerialFinding, apis: Mapping[str, list[str]]) -> Iterator[SuggestedEntry]:
    attributes = {"path": port.best}
    receivers = list(_entry(apis, "movement_sensor", "nmea", "gps", attributes, port.path))
    lines = _entry(apis, "sensor", "serial_line", "serial", {**attributes, "baud": 115200, "parser": "text"}, port.path)
    if port.vendor in _RECEIVERS:
        yield from receivers
        yield from (replace(entry, alternative=bool(receivers)) for entry in lines)
    else:
        yield from lines
        yield from (replace(entry, alternative=True) for entry in receivers)


def _usb(device: UsbFinding) -> dict[str, Any]:
    identity = {"vendor_id": device.vendor, "product_id": device.product}
    return {**identity, "serial_number": device.serial} if device.serial else {**identity, "port": device.port}


def _entry(
    apis: Mapping[str, list[str]], kind: str, model: str, name: str, attributes: Mapping[str, Any], subject: str
) -> Iterator[SuggestedEntry]:
    api = f"rdk:component:{kind}"
    if api in apis.get(f"{_BUILTIN}{model}", ()):
        yield SuggestedEntry(Discovery(name, api, f"{_BUILTIN}{model}", attributes), subject)


def _named(entry: SuggestedEntry, taken: set[str]) -> SuggestedEntry:
    """Give the entry a name that is not in `taken`: `serial`, `serial-2`, `serial-3`."""
    base = name = entry.discovery.name
    count = 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    taken.add(name)
    return replace(entry, discovery=replace(entry.discovery, name=name))
