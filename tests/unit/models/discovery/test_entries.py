"""Entries for findings are complete, use existing models and have distinct names."""

from __future__ import annotations

import json

import pytest

from engine.registry import Registry
from hal.inventory.findings import (
    Board,
    CameraFinding,
    GpioChip,
    I2cAdapter,
    I2cDevice,
    InputFinding,
    Inventory,
    SerialFinding,
    UsbFinding,
)
from models import BUILTIN
from models.chips.common.addresses import chips_at
from models.discovery.entries import SuggestedEntry, discovered_entries
from schema.attributes import decode_attributes
from schema.document.machine import decode_document
from schema.names import API, Model

PC = Board("generic", "PC")
BUS = I2cAdapter(
    1,
    "/dev/i2c-1",
    ("/dev/machine/i2c/bcm2835",),
    "bcm2835",
    True,
    (
        I2cDevice(0x48, likely=("TMP102", "LM75", "PCF8591")),
        I2cDevice(0x68, "rtc-ds1307"),
        I2cDevice(0x29, likely=("VL53L0X",)),
        *(I2cDevice(address, likely=chips_at(address)) for address in (0x40, 0x44, 0x50, 0x69, 0x76)),
    ),
)
EVERYTHING = Inventory(
    Board("raspberry-pi-4", "Raspberry Pi 4 Model B"),
    gpio=(GpioChip("gpiochip0", "/dev/gpiochip0", "pinctrl-bcm2711", 58),),
    i2c=(BUS,),
    serial=(
        SerialFinding("/dev/ttyUSB0", ("/dev/serial/by-id/usb-A",), "0403", "6001", "A", 0, "FTDI"),
        SerialFinding("/dev/ttyUSB1", ("/dev/serial/by-id/usb-B",), "0403", "6001", "B", 0, "FTDI"),
        SerialFinding("/dev/ttyACM0", ("/dev/serial/by-id/usb-u-blox",), "1546", "01a8", "", 0, "u-blox GNSS"),
    ),
    usb=(UsbFinding("1234", "abcd", "1-1"), UsbFinding("0403", "6001", "1-2", drivers=("ftdi_sio",))),
    cameras=(CameraFinding("/dev/video0", "cam", ("/dev/v4l/by-id/usb-cam",)),),
    inputs=(InputFinding("/dev/input/event3", "Pad", "gamepad"), InputFinding("/dev/input/event0", "Keys", "keyboard")),
)


def models(result: tuple[SuggestedEntry, ...], subject: str) -> list[tuple[str, bool]]:
    return [
        (entry.discovery.model.rpartition(":")[2], entry.alternative) for entry in result if entry.subject == subject
    ]


def test_an_address_gets_every_model_that_lives_there_the_likely_one_first() -> None:
    result = discovered_entries(Inventory(PC, i2c=(BUS,)), BUILTIN)
    assert models(result, "0x48 on /dev/i2c-1") == [("tmp102", False), ("lm75", True)]
    first = result[0].discovery
    assert (first.name, first.api) == ("tmp102-48", "rdk:component:sensor")
    assert first.attributes == {"i2c_bus": "/dev/machine/i2c/bcm2835", "i2c_address": "0x48"}


def test_a_chip_that_can_be_anywhere_is_less_likely_and_a_memory_is_not_guessed() -> None:
    result = discovered_entries(EVERYTHING, BUILTIN)
    assert models(result, "0x40 on /dev/i2c-1")[0] == ("ina219", False)
    assert models(result, "0x40 on /dev/i2c-1")[-1] == ("pca9685", True)
    assert models(result, "0x50 on /dev/i2c-1") == [("pca9685", True)]


def test_chips_with_a_kernel_driver_or_without_a_model_get_no_entry() -> None:
    subjects = {entry.subject for entry in discovered_entries(EVERYTHING, BUILTIN)}
    assert not any("0x68" in subject or "0x29" in subject for subject in subjects)
    assert "USB 0403:6001" not in subjects
    assert "/dev/input/event0" not in subjects


def test_a_receiver_is_recognized_by_its_manufacturer() -> None:
    result = discovered_entries(EVERYTHING, BUILTIN)
    assert models(result, "/dev/ttyACM0") == [("nmea", False), ("serial_line", True)]
    assert models(result, "/dev/ttyUSB0") == [("serial_line", False), ("nmea", True)]


def test_names_differ() -> None:
    names = [entry.discovery.name for entry in discovered_entries(EVERYTHING, BUILTIN)]
    assert len(set(names)) == len(names)
    assert {"local", "serial", "serial-2", "gps", "tmp102-48"} <= set(names)


def test_a_model_that_is_not_built_in_is_not_offered() -> None:
    assert discovered_entries(EVERYTHING, {}) == ()
    only = {("rdk:component:sensor", "rdk:builtin:lm75"): "x:Y"}
    assert [entry.discovery.model for entry in discovered_entries(EVERYTHING, only)] == ["rdk:builtin:lm75"]
    assert not discovered_entries(EVERYTHING, only)[0].alternative


@pytest.mark.parametrize("entry", discovered_entries(EVERYTHING, BUILTIN), ids=lambda entry: entry.discovery.name)
def test_each_entry_is_accepted_by_its_model(entry: SuggestedEntry) -> None:
    discovery = entry.discovery
    cls = Registry(BUILTIN).find(API.parse(discovery.api), Model.parse(discovery.model))
    _, warnings = decode_attributes(cls.Config, dict(discovery.attributes), path="attributes")
    assert not warnings


def test_all_of_them_together_are_a_document() -> None:
    components = [entry.document() for entry in discovered_entries(EVERYTHING, BUILTIN) if not entry.alternative]
    decoded = decode_document(json.dumps({"components": components}).encode())
    assert decoded.problems == ()
    assert decoded.warnings == ()
    assert decoded.document is not None
    assert len(decoded.document.components) == len(components)


def test_a_port_of_the_computer_itself_gets_none() -> None:
    assert discovered_entries(Inventory(PC, serial=(SerialFinding("/dev/ttyS0"),)), BUILTIN) == ()
