"""BeagleBone boards. Pure.

Chips are named by their device (`4804c000.gpio`): labels depend on the probing order, which differs between kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hal.boards.definition import BoardDefinition, BoardPin
from hal.ports.digital import Line
from hal.ports.pwm import PwmChannel

# am33xx.dtsi and am33xx-l4.dtsi: gpio0..gpio3, and the PWM units of epwmss0..2.
_CHIPS: Final = ("44e07000.gpio", "4804c000.gpio", "481ac000.gpio", "481ae000.gpio")
_PWM: Final[Mapping[str, PwmChannel]] = {
    "P9_22": PwmChannel("48300200.pwm", 0),
    "P9_21": PwmChannel("48300200.pwm", 1),
    "P9_14": PwmChannel("48302200.pwm", 0),
    "P9_16": PwmChannel("48302200.pwm", 1),
    "P8_19": PwmChannel("48304200.pwm", 0),
    "P8_13": PwmChannel("48304200.pwm", 1),
}

# Position, line and note. Lines are from gpio-line-names of am335x-boneblack.dts, power pins from the tables of the
# expansion headers in the System Reference Manual.
_TABLE: Final = """\
P8_1 - ground
P8_2 - ground
P8_3 1_6 eMMC data 6
P8_4 1_7 eMMC data 7
P8_5 1_2 eMMC data 2
P8_6 1_3 eMMC data 3
P8_7 2_2
P8_8 2_3
P8_9 2_5
P8_10 2_4
P8_11 1_13
P8_12 1_12
P8_13 0_23 EHRPWM2B
P8_14 0_26
P8_15 1_15
P8_16 1_14
P8_17 0_27
P8_18 2_1
P8_19 0_22 EHRPWM2A
P8_20 1_31 eMMC command
P8_21 1_30 eMMC clock
P8_22 1_5 eMMC data 5
P8_23 1_4 eMMC data 4
P8_24 1_1 eMMC data 1
P8_25 1_0 eMMC data 0
P8_26 1_29
P8_27 2_22 HDMI
P8_28 2_24 HDMI
P8_29 2_23 HDMI
P8_30 2_25 HDMI
P8_31 0_10 HDMI
P8_32 0_11 HDMI
P8_33 0_9 HDMI
P8_34 2_17 HDMI
P8_35 0_8 HDMI
P8_36 2_16 HDMI
P8_37 2_14 HDMI
P8_38 2_15 HDMI
P8_39 2_12 HDMI
P8_40 2_13 HDMI
P8_41 2_10 HDMI
P8_42 2_11 HDMI
P8_43 2_8 HDMI
P8_44 2_9 HDMI
P8_45 2_6 HDMI
P8_46 2_7 HDMI
P9_1 - ground
P9_2 - ground
P9_3 - 3.3 V
P9_4 - 3.3 V
P9_5 - 5 V of the power jack
P9_6 - 5 V of the power jack
P9_7 - 5 V of the system
P9_8 - 5 V of the system
P9_9 - power button
P9_10 - reset
P9_11 0_30 UART4 RXD
P9_12 1_28
P9_13 0_31 UART4 TXD
P9_14 1_18 EHRPWM1A
P9_15 1_16
P9_16 1_19 EHRPWM1B
P9_17 0_5 I2C1 SCL, SPI0 chip select 0
P9_18 0_4 I2C1 SDA, SPI0 D1
P9_19 0_13 I2C2 SCL
P9_20 0_12 I2C2 SDA
P9_21 0_3 SPI0 D0, EHRPWM0B
P9_22 0_2 SPI0 SCLK, EHRPWM0A
P9_23 1_17
P9_24 0_15 UART1 TXD
P9_25 3_21
P9_26 0_14 UART1 RXD
P9_27 3_19
P9_28 3_17 SPI1 chip select 0
P9_29 3_15 SPI1 D0
P9_30 3_16 SPI1 D1
P9_31 3_14 SPI1 SCLK
P9_32 - 1.8 V of the analog inputs
P9_33 - analog input 4, 1.8 V at most
P9_34 - ground of the analog inputs
P9_35 - analog input 6, 1.8 V at most
P9_36 - analog input 5, 1.8 V at most
P9_37 - analog input 2, 1.8 V at most
P9_38 - analog input 3, 1.8 V at most
P9_39 - analog input 0, 1.8 V at most
P9_40 - analog input 1, 1.8 V at most
P9_41 0_20 the same pin as P9_41A
P9_41A 3_20 the same pin as P9_41
P9_42 0_7 the same pin as P9_42B
P9_42B 3_18 the same pin as P9_42
P9_43 - ground
P9_44 - ground
P9_45 - ground
P9_46 - ground
"""


def _pin(row: str) -> BoardPin:
    place, line, note = (*row.split(" ", 2), "")[:3]
    head, _, number = place.partition("_")
    spellings = (place, f"{head}_0{number}", f"{head}.{number}", f"{head}.0{number}")
    names = spellings if len(number) == 1 else spellings[::2]
    if line == "-":
        return BoardPin(names, note=note)
    bank, _, offset = line.partition("_")
    return BoardPin((*names, f"GPIO{line}"), Line(_CHIPS[int(bank)], int(offset)), _PWM.get(place), note)


BOARDS: Final = (
    BoardDefinition(
        "beaglebone-black",
        "BeagleBone Black",
        ("ti,am335x-bone-black",),
        tuple(_pin(row) for row in _TABLE.splitlines()),
        {"I2C2": "/dev/i2c-2", "I2C1": "/dev/i2c-1"},
        {"SPI0": "/dev/spidev0.0", "SPI1": "/dev/spidev1.0"},
        {"UART1": "/dev/ttyS1", "UART4": "/dev/ttyS4"},
        sources=(
            "Linux arch/arm/boot/dts/ti/omap/am335x-boneblack.dts",
            "Linux arch/arm/boot/dts/ti/omap/am33xx-l4.dtsi",
            "BeagleBone Black System Reference Manual, expansion headers",
        ),
        unverified=(
            "the numbers of the PWM channels and of the serial ports, and which pins are power and ground",
            "the numbers of the SPI devices, which depend on the cape overlays",
        ),
    ),
)
