"""NVIDIA Jetson developer kits. Pure.

The names of a pin are its number, Broadcom's number at that position (`BCM17`, as in Jetson.GPIO), the name of the
module's pin, the name of the processor's pin unless a module pin has the same name, and the name of the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hal.boards.definition import BoardDefinition, BoardPin
from hal.boards.header import BCM, header
from hal.ports.digital import Line
from hal.ports.pwm import PwmChannel

Row: TypeAlias = tuple[int, str, str, str, str]  # offset, line, module pin, processor pin, PWM device and channel

_TABLE: Final = "NVIDIA/jetson-gpio lib/python/Jetson/GPIO/gpio_pin_data.py"

# Offsets and names are from the table of Jetson.GPIO. Lines in `PAA`, `PBB` and `PCC` belong to the always-on chip. The
# old tegra-gpio driver has no line names.
_NANO: Final[Mapping[int, Row]] = {
    7: (216, "", "GPIO9", "AUD_MCLK", ""),
    11: (50, "", "UART1_RTS", "UART2_RTS", ""),
    12: (79, "", "I2S0_SCLK", "DAP4_SCLK", ""),
    13: (14, "", "SPI1_SCK", "SPI2_SCK", ""),
    15: (194, "", "GPIO12", "LCD_TE", ""),
    16: (232, "", "SPI1_CS1", "SPI2_CS1", ""),
    18: (15, "", "SPI1_CS0", "SPI2_CS0", ""),
    19: (16, "", "SPI0_MOSI", "SPI1_MOSI", ""),
    21: (17, "", "SPI0_MISO", "SPI1_MISO", ""),
    22: (13, "", "SPI1_MISO", "SPI2_MISO", ""),
    23: (18, "", "SPI0_SCK", "SPI1_SCK", ""),
    24: (19, "", "SPI0_CS0", "SPI1_CS0", ""),
    26: (20, "", "SPI0_CS1", "SPI1_CS1", ""),
    29: (149, "", "GPIO01", "CAM_AF_EN", ""),
    31: (200, "", "GPIO11", "GPIO_PZ0", ""),
    32: (168, "", "GPIO07", "LCD_BL_PW", "7000a000.pwm 0"),
    33: (38, "", "GPIO13", "GPIO_PE6", "7000a000.pwm 2"),
    35: (76, "", "I2S0_FS", "DAP4_FS", ""),
    36: (51, "", "UART1_CTS", "UART2_CTS", ""),
    37: (12, "", "SPI1_MOSI", "SPI2_MOSI", ""),
    38: (77, "", "I2S0_DIN", "DAP4_DIN", ""),
    40: (78, "", "I2S0_DOUT", "DAP4_DOUT", ""),
}
_XAVIER_NX: Final[Mapping[int, Row]] = {
    7: (118, "PS.04", "GPIO09", "AUD_MCLK", ""),
    11: (112, "PR.04", "UART1_RTS", "UART1_RTS", ""),
    12: (127, "PT.05", "I2S0_SCLK", "DAP5_SCLK", ""),
    13: (149, "PY.00", "SPI1_SCK", "SPI3_SCK", ""),
    15: (16, "PCC.04", "GPIO12", "TOUCH_CLK", "c340000.pwm 0"),
    16: (153, "PY.04", "SPI1_CS1", "SPI3_CS1_N", ""),
    18: (152, "PY.03", "SPI1_CS0", "SPI3_CS0_N", ""),
    19: (162, "PZ.05", "SPI0_MOSI", "SPI1_MOSI", ""),
    21: (161, "PZ.04", "SPI0_MISO", "SPI1_MISO", ""),
    22: (150, "PY.01", "SPI1_MISO", "SPI3_MISO", ""),
    23: (160, "PZ.03", "SPI0_SCK", "SPI1_SCK", ""),
    24: (163, "PZ.06", "SPI0_CS0", "SPI1_CS0_N", ""),
    26: (164, "PZ.07", "SPI0_CS1", "SPI1_CS1_N", ""),
    29: (105, "PQ.05", "GPIO01", "SOC_GPIO41", ""),
    31: (106, "PQ.06", "GPIO11", "SOC_GPIO42", ""),
    32: (108, "PR.00", "GPIO07", "SOC_GPIO44", "32f0000.pwm 0"),
    33: (84, "PN.01", "GPIO13", "SOC_GPIO54", "3280000.pwm 0"),
    35: (130, "PU.00", "I2S0_FS", "DAP5_FS", ""),
    36: (113, "PR.05", "UART1_CTS", "UART1_CTS", ""),
    37: (151, "PY.02", "SPI1_MOSI", "SPI3_MOSI", ""),
    38: (129, "PT.07", "I2S0_DIN", "DAP5_DIN", ""),
    40: (128, "PT.06", "I2S0_DOUT", "DAP5_DOUT", ""),
}
_ORIN_NX: Final[Mapping[int, Row]] = {
    7: (144, "PAC.06", "GPIO09", "GP167", ""),
    11: (112, "PR.04", "UART1_RTS", "GP72_UART1_RTS_N", ""),
    12: (50, "PH.07", "I2S0_SCLK", "GP122", ""),
    13: (122, "PY.00", "SPI1_SCK", "GP36_SPI3_CLK", ""),
    15: (85, "PN.01", "GPIO12", "GP88_PWM1", "3280000.pwm 0"),
    16: (126, "PY.04", "SPI1_CS1", "GP40_SPI3_CS1_N", ""),
    18: (125, "PY.03", "SPI1_CS0", "GP39_SPI3_CS0_N", ""),
    19: (135, "PZ.05", "SPI0_MOSI", "GP49_SPI1_MOSI", ""),
    21: (134, "PZ.04", "SPI0_MISO", "GP48_SPI1_MISO", ""),
    22: (123, "PY.01", "SPI1_MISO", "GP37_SPI3_MISO", ""),
    23: (133, "PZ.03", "SPI0_SCK", "GP47_SPI1_CLK", ""),
    24: (136, "PZ.06", "SPI0_CS0", "GP50_SPI1_CS0_N", ""),
    26: (137, "PZ.07", "SPI0_CS1", "GP51_SPI1_CS1_N", ""),
    29: (105, "PQ.05", "GPIO01", "GP65", ""),
    31: (106, "PQ.06", "GPIO11", "GP66", ""),
    32: (41, "PG.06", "GPIO07", "GP113_PWM7", "32e0000.pwm 0"),
    33: (43, "PH.00", "GPIO13", "GP115", "32c0000.pwm 0"),
    35: (53, "PI.02", "I2S0_FS", "GP125", ""),
    36: (113, "PR.05", "UART1_CTS", "GP73_UART1_CTS_N", ""),
    37: (124, "PY.02", "SPI1_MOSI", "GP38_SPI3_MOSI", ""),
    38: (52, "PI.01", "I2S0_SDIN", "GP124", ""),
    40: (51, "PI.00", "I2S0_SDOUT", "GP123", ""),
}
_AGX_ORIN: Final[Mapping[int, Row]] = {
    7: (106, "PQ.06", "MCLK05", "GP66", ""),
    11: (112, "PR.04", "UART1_RTS", "GP72_UART1_RTS_N", ""),
    12: (50, "PH.07", "I2S2_CLK", "GP122", ""),
    13: (108, "PR.00", "PWM01", "GP68", ""),
    15: (85, "PN.01", "GPIO27", "GP88_PWM1", "3280000.pwm 0"),
    16: (9, "PBB.01", "GPIO08", "GP26", ""),
    18: (43, "PH.00", "GPIO35", "GP115", "32c0000.pwm 0"),
    19: (135, "PZ.05", "SPI1_MOSI", "GP49_SPI1_MOSI", ""),
    21: (134, "PZ.04", "SPI1_MISO", "GP48_SPI1_MISO", ""),
    22: (96, "PP.04", "GPIO17", "GP56", ""),
    23: (133, "PZ.03", "SPI1_CLK", "GP47_SPI1_CLK", ""),
    24: (136, "PZ.06", "SPI1_CS0_N", "GP50_SPI1_CS0_N", ""),
    26: (137, "PZ.07", "SPI1_CS1_N", "GP51_SPI1_CS1_N", ""),
    29: (1, "PAA.01", "CAN0_DIN", "GP18_CAN0_DIN", ""),
    31: (0, "PAA.00", "CAN0_DOUT", "GP17_CAN0_DOUT", ""),
    32: (8, "PBB.00", "GPIO09", "GP25", ""),
    33: (2, "PAA.02", "CAN1_DOUT", "GP19_CAN1_DOUT", ""),
    35: (53, "PI.02", "I2S2_FS", "GP125", ""),
    36: (113, "PR.05", "UART1_CTS", "GP73_UART1_CTS_N", ""),
    37: (3, "PAA.03", "CAN1_DIN", "GP20_CAN1_DIN", ""),
    38: (52, "PI.01", "I2S2_DIN", "GP124", ""),
    40: (51, "PI.00", "I2S2_DOUT", "GP123", ""),
}

_ALWAYS_ON: Final = ("PAA.", "PBB.", "PCC.")


def _pins(
    rows: Mapping[int, Row], chip: str, fixed: Mapping[int, str], notes: Mapping[int, str]
) -> tuple[BoardPin, ...]:
    modules = {row[2] for row in rows.values()}

    def pin(number: int) -> BoardPin:
        if number in fixed:
            return BoardPin((str(number), f"BCM{BCM[number]}"), note=f"{fixed[number]}, not a GPIO line")
        offset, line, module, processor, pwm = rows[number]
        device, _, channel = pwm.partition(" ")
        names = [str(number), f"BCM{BCM[number]}", module]
        names += [processor] if processor not in modules else []
        names += [line] if line else []
        pin_notes = [notes.get(number, ""), f"PWM {device} channel {channel}" if pwm else ""]
        return BoardPin(
            tuple(names),
            Line(f"{chip}-aon" if line.startswith(_ALWAYS_ON) else chip, offset),
            PwmChannel(device, int(channel)) if pwm else None,
            ", ".join(note for note in pin_notes if note),
        )

    return header(pin)


_FIXED: Final = {3: "I2C1 SDA", 5: "I2C1 SCL", 8: "UART1 TXD", 10: "UART1 RXD", 27: "I2C0 SDA", 28: "I2C0 SCL"}
_FIXED_AGX: Final = {3: "I2C5 SDA", 5: "I2C5 SCL", 8: "UART1 TXD", 10: "UART1 RXD", 27: "I2C2 SDA", 28: "I2C2 SCL"}
_SPI: Final = {"SPI0": "/dev/spidev0.0", "SPI1": "/dev/spidev1.0"}
_DEVICE_NUMBERS: Final = "the numbers of the I2C and SPI devices differ between releases of Jetson Linux"
_MUX: Final = "SPI, PWM and I2S pins are GPIO until jetson-io.py has switched them"
_AGX_NOTES: Final = {11: "output only on the developer kit"}

BOARDS: Final = (
    BoardDefinition(
        "jetson-nano",
        "NVIDIA Jetson Nano Developer Kit",
        ("nvidia,p3450-0000", "nvidia,p3450-0002", "nvidia,jetson-nano"),
        _pins(_NANO, "tegra-gpio", _FIXED, {}),
        {"I2C1": "/dev/i2c-1", "I2C0": "/dev/i2c-0"},
        _SPI,
        {"UART1": "/dev/ttyTHS1"},
        sources=(_TABLE,),
        unverified=(_DEVICE_NUMBERS, _MUX),
    ),
    BoardDefinition(
        "jetson-xavier-nx",
        "NVIDIA Jetson Xavier NX Developer Kit",
        (
            "nvidia,p3509-0000+p3668-0000",
            "nvidia,p3509-0000+p3668-0001",
            "nvidia,p3449-0000+p3668-0000",
            "nvidia,p3449-0000+p3668-0001",
            "nvidia,p3449-0000+p3668-0003",
        ),
        _pins(_XAVIER_NX, "tegra194-gpio", _FIXED, {}),
        {"I2C1": "/dev/i2c-8", "I2C0": "/dev/i2c-1"},
        _SPI,
        sources=(_TABLE, "Linux drivers/gpio/gpio-tegra186.c"),
        unverified=(_DEVICE_NUMBERS, _MUX),
    ),
    BoardDefinition(
        "jetson-orin-nano",
        "NVIDIA Jetson Orin Nano and Orin NX Developer Kits",
        tuple(
            f"nvidia,{carrier}+p3767-000{unit}{power}"
            for unit in (0, 1, 3, 4, 5)
            for carrier in ("p3509-0000", "p3768-0000")
            for power in ("", "-super")  # the same board with the power modes of Jetson Linux 36.4.3 and later
        ),
        _pins(_ORIN_NX, "tegra234-gpio", _FIXED, {}),
        {"I2C1": "/dev/i2c-7", "I2C0": "/dev/i2c-1"},
        _SPI,
        sources=(_TABLE, "Linux drivers/gpio/gpio-tegra186.c"),
        unverified=(_DEVICE_NUMBERS, _MUX),
    ),
    BoardDefinition(
        "jetson-agx-orin",
        "NVIDIA Jetson AGX Orin Developer Kit",
        tuple(f"nvidia,p3737-0000+p3701-000{sku}" for sku in (0, 1, 4, 5, 8)),
        _pins(_AGX_ORIN, "tegra234-gpio", _FIXED_AGX, _AGX_NOTES),
        {"I2C5": "/dev/i2c-7", "I2C2": "/dev/i2c-1"},
        {"SPI1": "/dev/spidev0.0"},
        sources=(_TABLE, "Linux drivers/gpio/gpio-tegra186.c"),
        unverified=(_DEVICE_NUMBERS, _MUX, "the PWM channel of pin 13 is not in the table"),
    ),
)
