"""Ports: the interfaces through which the rest of the machine uses hardware, one contract per file.

Public, in the order in which to read them:

* `controls`: Controls that a person operates: gamepads, joysticks, panels of buttons
* `digital`: Digital lines: a level that is high or low
* `hotplug`: Hot-plug: events of the system about added and removed devices
* `i2c`: I2C: the unit of work is the transaction, which is never interrupted
* `pwm`: Pulse-width modulation: a square wave with a variable duty
* `serial`: Serial ports: plain byte streams
* `spi`: SPI: full-duplex transfers with a device at a chip select
* `ticks`: Periodic ticks for control loops, from a kernel timer, so that delays do not accumulate
* `usb`: USB devices without a kernel driver: control, bulk and interrupt transfers
* `video`: Video: a camera that delivers frames continuously, of which the newest is used
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.ports.controls import AxisRange as AxisRange
    from hal.ports.controls import ControlChange as ControlChange
    from hal.ports.controls import Controls as Controls
    from hal.ports.controls import ControlsIdentity as ControlsIdentity
    from hal.ports.digital import Bias as Bias
    from hal.ports.digital import DigitalOutput as DigitalOutput
    from hal.ports.digital import EdgeEvents as EdgeEvents
    from hal.ports.digital import InputSettings as InputSettings
    from hal.ports.digital import Line as Line
    from hal.ports.digital import OutputSettings as OutputSettings
    from hal.ports.hotplug import HotplugEvent as HotplugEvent
    from hal.ports.hotplug import HotplugEvents as HotplugEvents
    from hal.ports.i2c import FIRST_ADDRESS as FIRST_ADDRESS
    from hal.ports.i2c import LAST_ADDRESS as LAST_ADDRESS
    from hal.ports.pwm import PwmChannel as PwmChannel
    from hal.ports.pwm import PwmOutput as PwmOutput
    from hal.ports.serial import Parity as Parity
    from hal.ports.serial import SerialIdentity as SerialIdentity
    from hal.ports.serial import SerialSettings as SerialSettings
    from hal.ports.spi import SpiDevice as SpiDevice
    from hal.ports.spi import SpiSettings as SpiSettings
    from hal.ports.ticks import Ticks as Ticks
    from hal.ports.usb import UsbDevice as UsbDevice
    from hal.ports.usb import UsbIdentity as UsbIdentity
    from hal.ports.video import Video as Video
    from hal.ports.video import VideoSettings as VideoSettings
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "controls": ["AxisRange", "ControlChange", "Controls", "ControlsIdentity"],
            "digital": ["Bias", "DigitalOutput", "EdgeEvents", "InputSettings", "Line", "OutputSettings"],
            "hotplug": ["HotplugEvent", "HotplugEvents"],
            "i2c": ["FIRST_ADDRESS", "LAST_ADDRESS"],
            "pwm": ["PwmChannel", "PwmOutput"],
            "serial": ["Parity", "SerialIdentity", "SerialSettings"],
            "spi": ["SpiDevice", "SpiSettings"],
            "ticks": ["Ticks"],
            "usb": ["UsbDevice", "UsbIdentity"],
            "video": ["Video", "VideoSettings"],
        },
    )
