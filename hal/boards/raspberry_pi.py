"""Raspberry Pi boards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hal.boards.definition import BoardDefinition, BoardPin
from hal.boards.header import BCM, header
from hal.ports.digital import Line
from hal.ports.pwm import PwmChannel

# Other names than GPIOn in the documentation and the kernel's device trees, by line. PWM0 and similar names are
# omitted, because two pins carry the same channel.
_NAMES: Final[Mapping[int, tuple[str, ...]]] = {
    0: ("ID_SD", "ID_SDA"),
    1: ("ID_SC", "ID_SCL"),
    2: ("SDA", "SDA1"),
    3: ("SCL", "SCL1"),
    4: ("GPCLK0", "GPIO_GCLK"),
    7: ("CE1", "SPI0_CE1", "SPI_CE1_N"),
    8: ("CE0", "SPI0_CE0", "SPI_CE0_N"),
    9: ("MISO", "SPI0_MISO", "SPI_MISO"),
    10: ("MOSI", "SPI0_MOSI", "SPI_MOSI"),
    11: ("SCLK", "SPI0_SCLK", "SPI_SCLK"),
    14: ("TXD",),
    15: ("RXD",),
    16: ("SPI1_CE2",),
    17: ("SPI1_CE1",),
    18: ("SPI1_CE0", "PCM_CLK"),
    19: ("SPI1_MISO", "PCM_FS"),
    20: ("SPI1_MOSI", "PCM_DIN"),
    21: ("SPI1_SCLK", "PCM_DOUT"),
}
_NOTES: Final[Mapping[int, str]] = {
    0: "I2C0 SDA, for the memory of HATs",
    1: "I2C0 SCL, for the memory of HATs",
    2: "I2C1 SDA, pulled up to 3.3 V",
    3: "I2C1 SCL, pulled up to 3.3 V",
    7: "SPI0 chip select 1",
    8: "SPI0 chip select 0",
    9: "SPI0 MISO",
    10: "SPI0 MOSI",
    11: "SPI0 SCLK",
    14: "UART TXD",
    15: "UART RXD",
    16: "SPI1 chip select 2",
    17: "SPI1 chip select 1",
    18: "SPI1 chip select 0",
    19: "SPI1 MISO",
    20: "SPI1 MOSI",
    21: "SPI1 SCLK",
}

# BCM2835 ARM Peripherals, section 6.2, alternative functions: PWM0 is ALT0 of GPIO12 and ALT5 of GPIO18, PWM1 is ALT0
# of GPIO13 and ALT5 of GPIO19. RP1 Peripherals, table of GPIO functions, and drivers/pinctrl/pinctrl-rp1.c: PWM0[0..3]
# are function a0 of GPIO12..15, PWM0[2..3] function a3 of GPIO18..19.
_BCM_PWM: Final[Mapping[int, int]] = {12: 0, 13: 1, 18: 0, 19: 1}
_RP1_PWM: Final[Mapping[int, int]] = {12: 0, 13: 1, 14: 2, 15: 3, 18: 2, 19: 3}

_HEADER: Final = "Raspberry Pi documentation, GPIO and the 40-pin header"
_FUNCTIONS: Final = "BCM2835 ARM Peripherals, section 6.2"
_I2C: Final = {"I2C1": "/dev/i2c-1", "I2C0": "/dev/i2c-0"}
_SPI: Final = {"SPI0": "/dev/spidev0.0", "SPI1": "/dev/spidev1.0"}
_SERIAL: Final = {"UART": "/dev/serial0"}


def _line(chip: str, number: int, pwm_chip: str, channels: Mapping[int, int], names: tuple[str, ...]) -> BoardPin:
    channel = channels.get(number)
    notes = [note for note in (_NOTES.get(number, ""), "" if channel is None else f"PWM0 channel {channel}") if note]
    return BoardPin(
        (*names, f"GPIO{number}", f"BCM{number}", *_NAMES.get(number, ())),
        Line(chip, number),
        None if channel is None else PwmChannel(pwm_chip, channel),
        ", ".join(notes),
    )


def _pins(chip: str, pwm_chip: str, channels: Mapping[int, int]) -> tuple[BoardPin, ...]:
    return header(lambda place: _line(chip, BCM[place], pwm_chip, channels, (str(place),)))


# Labels of the chips are from MODULE_NAME in drivers/pinctrl/bcm/pinctrl-bcm2835.c and drivers/pinctrl/pinctrl-rp1.c,
# device names of the PWM chips from pwm@7e20c000 and rp1_pwm0 (pwm@98000) with the `ranges` of the device trees below.
_BCM2837: Final = ("pinctrl-bcm2835", "3f20c000.pwm", _BCM_PWM)
_BCM2711: Final = ("pinctrl-bcm2711", "fe20c000.pwm", _BCM_PWM)
_RP1: Final = ("pinctrl-rp1", "1f00098000.pwm", _RP1_PWM)


_PWM_NUMBERS: Final = "the numbers of the PWM channels and the addresses of their devices"


def _bcm(
    name: str, title: str, compatible: tuple[str, ...], tree: str, chip: tuple[str, str, Mapping[int, int]]
) -> BoardDefinition:
    return BoardDefinition(
        name, title, compatible, _pins(*chip), _I2C, _SPI, _SERIAL,
        sources=(_HEADER, _FUNCTIONS, f"Linux arch/arm/boot/dts/broadcom/{tree}"),
        unverified=(_PWM_NUMBERS,),
    )  # fmt: skip


def _rp1(name: str, title: str, compatible: tuple[str, ...], tree: str) -> BoardDefinition:
    return BoardDefinition(
        name, title, compatible, _pins(*_RP1), _I2C, _SPI, {"UART0": "/dev/ttyAMA0"},
        sources=(
            _HEADER,
            "RP1 Peripherals, GPIO functions",
            f"raspberrypi/linux arch/arm64/boot/dts/broadcom/{tree}, rp1.dtsi and drivers/pinctrl/pinctrl-rp1.c",
        ),
        unverified=(_PWM_NUMBERS,),
    )  # fmt: skip


_COMPUTE_MODULE_3: Final = BoardDefinition(
    "raspberry-pi-cm3",
    "Raspberry Pi Compute Module 3",
    ("raspberrypi,3-compute-module",),
    tuple(_line(_BCM2837[0], number, _BCM2837[1], _BCM_PWM, ()) for number in range(46)),
    _I2C,
    _SPI,
    _SERIAL,
    sources=(_FUNCTIONS, "Linux arch/arm/boot/dts/broadcom/bcm2837-rpi-cm3-io3.dts"),
    unverified=(
        _PWM_NUMBERS,
        "the numbers of the IO board's headers J5 and J6 are not in the table: name lines as GPIOn",
    ),
)

BOARDS: Final = (
    _bcm("raspberry-pi-3", "Raspberry Pi 3 Model B", ("raspberrypi,3-model-b",), "bcm2837-rpi-3-b.dts", _BCM2837),
    _bcm("raspberry-pi-3-plus", "Raspberry Pi 3 Model B+", ("raspberrypi,3-model-b-plus",),
         "bcm2837-rpi-3-b-plus.dts", _BCM2837),
    _bcm("raspberry-pi-3a-plus", "Raspberry Pi 3 Model A+", ("raspberrypi,3-model-a-plus",),
         "bcm2837-rpi-3-a-plus.dts", _BCM2837),
    _bcm("raspberry-pi-zero-2", "Raspberry Pi Zero 2 W",
         ("raspberrypi,model-zero-2-w",), "bcm2837-rpi-zero-2-w.dts", _BCM2837),
    _COMPUTE_MODULE_3,
    _bcm("raspberry-pi-4", "Raspberry Pi 4 Model B", ("raspberrypi,4-model-b",), "bcm2711-rpi-4-b.dts", _BCM2711),
    _bcm("raspberry-pi-400", "Raspberry Pi 400", ("raspberrypi,400",), "bcm2711-rpi-400.dts", _BCM2711),
    _bcm("raspberry-pi-cm4", "Raspberry Pi Compute Module 4 on its IO board", ("raspberrypi,4-compute-module",),
         "bcm2711-rpi-cm4-io.dts", _BCM2711),
    _rp1("raspberry-pi-5", "Raspberry Pi 5", ("raspberrypi,5-model-b",), "bcm2712-rpi-5-b.dts"),
    _rp1("raspberry-pi-500", "Raspberry Pi 500", ("raspberrypi,500",), "bcm2712-rpi-500.dts"),
    _rp1("raspberry-pi-cm5", "Raspberry Pi Compute Module 5 on its IO board", ("raspberrypi,5-compute-module",),
         "bcm2712-rpi-cm5.dtsi"),
)  # fmt: skip
