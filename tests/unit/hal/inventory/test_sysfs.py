"""Buses and devices read from a fake tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hal.inventory.buses import i2c_adapters, one_wire, pwm_chips, spi_places
from hal.inventory.findings import I2cDevice
from hal.inventory.gpio import gpio_chips
from hal.inventory.media import bits, cameras, input_devices
from hal.inventory.sysfs import natural
from hal.inventory.usb import serial_findings, usb_devices
from tests.unit.hal.inventory.computer import Computer

# Capabilities as a 64-bit kernel prints them: an Xbox gamepad, a mouse, a keyboard and a power button.
PAD = ("20000b", "7cdb000000000000 0 0 0 0")
MOUSE = ("17", "1f0000 0 0 0 0")
KEYBOARD = ("120013", "1000000000007 ff9f207ac14057ff febeffdfffefffff fffffffffffffffe")
BUTTON = ("3", "10000000000000 0")


def test_an_empty_computer_has_nothing(computer: Computer) -> None:
    for look in (gpio_chips, i2c_adapters, spi_places, serial_findings, usb_devices, cameras, input_devices, pwm_chips):
        assert look(computer.root) == ()


def test_a_chip_that_cannot_be_opened_is_described_from_sysfs(computer: Computer) -> None:
    computer.gpio(0, "pinctrl-bcm2711", 58, "fe200000.gpio")
    computer.gpio(10, "late", 4, "later.gpio")
    computer.gpio(2, "raspberrypi-exp-gpio", 8, "soc:firmware:gpio")
    result = gpio_chips(computer.root)
    assert [(chip.name, chip.label, chip.count, chip.lines) for chip in result] == [
        ("gpiochip0", "pinctrl-bcm2711", 58, ()),
        ("gpiochip2", "raspberrypi-exp-gpio", 8, ()),
        ("gpiochip10", "late", 4, ()),
    ]


def test_a_chip_without_the_old_interface_is_still_there(computer: Computer) -> None:
    computer.write("sys/devices/platform/x/gpiochip0/dev", "254:0")
    computer.link("sys/bus/gpio/devices/gpiochip0", "sys/devices/platform/x/gpiochip0")
    assert [(chip.name, chip.label, chip.count) for chip in gpio_chips(computer.root)] == [("gpiochip0", "", 0)]


def test_i2c_adapters_with_names_links_and_drivers(computer: Computer) -> None:
    computer.i2c(1, "bcm2835 (i2c@7e804000)")
    computer.i2c(20, "fef04500.i2c")
    computer.i2c_driver(1, 0x68, "rtc-ds1307")
    computer.write("sys/devices/platform/soc/i2c-1/1-0050/name", "spd")  # declared, but without a driver
    computer.link("dev/machine/i2c/bcm2835_i2c_7e804000_", "dev/i2c-1")
    first, second = i2c_adapters(computer.root)
    assert (first.number, first.path, first.name) == (1, "/dev/i2c-1", "bcm2835 (i2c@7e804000)")
    assert first.stable == ("/dev/machine/i2c/bcm2835_i2c_7e804000_",)
    assert first.best == "/dev/machine/i2c/bcm2835_i2c_7e804000_"
    assert first.devices == (I2cDevice(0x68, "rtc-ds1307"),)
    assert not first.scanned
    assert second.best == "/dev/i2c-20"


def test_spi_places_for_programs_and_for_drivers(computer: Computer) -> None:
    computer.write("sys/class/spidev/spidev0.0/dev", "153:0")
    computer.write("sys/class/spidev/spidev0.1/dev", "153:1")
    computer.write("sys/bus/spi/devices/spi0.0/modalias", "spi:spidev")
    computer.write("sys/bus/spi/devices/spi1.2/modalias", "spi:mcp2515")
    computer.link("sys/bus/spi/devices/spi1.2/driver", "sys/bus/spi/drivers/mcp251x")
    result = spi_places(computer.root)
    assert [(place.bus, place.select, place.path, place.driver) for place in result] == [
        (0, 0, "/dev/spidev0.0", ""),
        (0, 1, "/dev/spidev0.1", ""),
        (1, 2, "", "mcp251x"),
    ]


def test_usb_devices_without_hubs_and_their_drivers(computer: Computer) -> None:
    computer.usb("1-1", "1d6b", "0002", kind="09")
    computer.usb("1-1.4", "0403", "6001", serial="HIL0001", driver="ftdi_sio")
    computer.usb("1-1.10", "1234", "abcd")
    first, two = usb_devices(computer.root)
    assert (first.vendor, first.product, first.serial, first.port, first.drivers) == (
        "0403",
        "6001",
        "HIL0001",
        "1-1.4",
        ("ftdi_sio",),
    )
    assert (first.path, first.manufacturer, first.title) == ("/dev/bus/usb/001/004", "Acme", "Widget")
    assert (two.port, two.drivers, two.serial) == ("1-1.10", (), "")


def test_serial_ports_by_id_with_the_device_behind_them(computer: Computer) -> None:
    interface = computer.usb("1-1.4", "0403", "6001", serial="HIL0001", driver="ftdi_sio")
    computer.tty("ttyUSB0", interface, "usb-Acme_Widget_HIL0001-if00-port0")
    computer.link("dev/machine/serial/usb-Acme_Widget_HIL0001-if00-port0", "dev/ttyUSB0")
    (port,) = serial_findings(computer.root)
    assert port.path == "/dev/ttyUSB0"
    assert port.best == "/dev/serial/by-id/usb-Acme_Widget_HIL0001-if00-port0"
    assert port.stable[1] == "/dev/machine/serial/usb-Acme_Widget_HIL0001-if00-port0"
    assert (port.vendor, port.product, port.serial, port.interface, port.title) == (
        "0403",
        "6001",
        "HIL0001",
        0,
        "Acme Widget",
    )


def test_of_a_cameras_nodes_the_one_with_the_picture(computer: Computer) -> None:
    computer.camera(0, "HD Webcam", 0, "usb-Acme_Cam-video-index0")
    computer.camera(1, "HD Webcam", 1)
    (camera,) = cameras(computer.root)
    assert (camera.path, camera.name, camera.best) == (
        "/dev/video0",
        "HD Webcam",
        "/dev/v4l/by-id/usb-Acme_Cam-video-index0",
    )


def test_kinds_of_input_devices(computer: Computer) -> None:
    for number, (name, (ev, key)) in enumerate(
        {"pad": PAD, "mouse": MOUSE, "keyboard": KEYBOARD, "button": BUTTON}.items()
    ):
        computer.input(number, name, ev, key)
    assert [(device.name, device.kind) for device in input_devices(computer.root)] == [
        ("pad", "gamepad"),
        ("mouse", "mouse"),
        ("keyboard", "keyboard"),
        ("button", "other"),
    ]


def test_pwm_chips_by_device(computer: Computer) -> None:
    computer.write("sys/class/pwm/pwmchip0/npwm", "2\n")
    computer.link("sys/class/pwm/pwmchip0/device", "sys/devices/platform/soc/fe20c000.pwm")
    (chip,) = pwm_chips(computer.root)
    assert (chip.name, chip.device, chip.channels) == ("pwmchip0", "fe20c000.pwm", 2)


def test_one_wire_devices_by_family(computer: Computer) -> None:
    computer.write("sys/bus/w1/devices/28-0316a2797bff/name", "")
    computer.write("sys/bus/w1/devices/w1_bus_master1/w1_master_name", "")
    (device,) = one_wire(computer.root)
    assert (device.id, device.title) == ("28-0316a2797bff", "DS18B20 thermometer")


def test_numbers_in_names_are_numbers() -> None:
    assert sorted(["ttyUSB10", "ttyUSB2", "i2c-1", "2-1", "10-1"], key=natural) == [
        "2-1",
        "10-1",
        "i2c-1",
        "ttyUSB2",
        "ttyUSB10",
    ]


@given(st.integers(min_value=0, max_value=2**200))
def test_bitmaps_of_sysfs(value: int) -> None:
    words = []
    rest = value
    while rest:
        words.append(f"{rest & (2**64 - 1):x}")
        rest >>= 64
    assert bits(" ".join(reversed(words)) or "0") == value
