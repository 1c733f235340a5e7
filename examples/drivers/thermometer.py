"""A sensor driver: the temperature of the processor, as the kernel measures it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from schema import ErrorKind, MachineError


class ThermometerConfig(Attributes, kw_only=True, frozen=True):
    """`file` holds thousandths of a degree Celsius; `offset_c` (°C) is added to them."""

    file: str = "/sys/class/thermal/thermal_zone0/temp"
    offset_c: float = 0.0


@model("acme:demo:thermometer")
class Thermometer(Sensor):
    """One reading: `temperature_c`."""

    Config: ClassVar[type[Attributes]] = ThermometerConfig
    attributes: ThermometerConfig

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The temperature now (°C). UNAVAILABLE if the file cannot be read."""
        try:
            thousandths = int(Path(self.attributes.file).read_text())  # noqa: ASYNC240 - sysfs answers at once
        except (OSError, ValueError) as error:
            raise MachineError(f"no temperature: {error}", kind=ErrorKind.UNAVAILABLE, remedy="check `file`") from error
        return {"temperature_c": thousandths / 1000 + self.attributes.offset_c}
