"""Movement sensor `nmea`: a satellite receiver (GPS, GNSS) or compass with NMEA 0183 on a serial port."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import trio

from engine import (
    Accuracy,
    Attributes,
    Context,
    Extra,
    GeoPosition,
    MovementProperties,
    MovementSensor,
    Started,
    Unsupported,
    model,
)
from hal import LONGEST, QUALITY, LineBuffer, Receiver
from models.devices.common.opening import opened
from models.devices.nmea.attributes import NmeaConfig
from schema import ErrorKind, GeoPoint, MachineError, Vector3

AT_REST = 0.3  # m/s; below this speed receivers omit the course


@model("rdk:builtin:nmea", "rdk:builtin:gps-nmea")
class Nmea(MovementSensor):
    """The latest position, speed and heading of the receiver. UNAVAILABLE without a fix or recent data."""

    Config: ClassVar[type[Attributes]] = NmeaConfig
    attributes: NmeaConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._receiver = Receiver()

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready when the port is open. HalError (GONE) if the device disappears."""
        config = self.attributes
        lines = LineBuffer(longest=LONGEST)
        async with opened(config, self) as port:
            task_status.started()
            while True:
                for line in lines.feed(await port.receive_some()):
                    self._receiver.feed(line, trio.current_time())

    def _get(self, name: str) -> Any:
        return self._receiver.get(name, trio.current_time(), self.attributes.max_age_s)

    def _unavailable(self, what: str, remedy: str) -> MachineError:
        return MachineError(f"{self.name}: {what}", kind=ErrorKind.UNAVAILABLE, remedy=remedy)

    def _require(self, name: str, what: str) -> Any:
        """Return a value. UNAVAILABLE with the reason if there is no recent value."""
        if (value := self._get(name)) is not None:
            return value
        if (age := self._receiver.age(name, trio.current_time())) is not None:
            raise self._unavailable(
                f"the last {what} is {age:.1f} s old, more than max_age_s", "check that the receiver still sends data"
            )
        if not self._receiver.sentences:
            raise self._unavailable(
                f"no NMEA sentence has arrived on {self.attributes.port()}",
                "check the wiring and the baud rate: 9600, 4800 and 38400 are usual",
            )
        raise self._unavailable(
            f"the receiver has not sent a {what}", "configure it to send the sentence that contains it"
        )

    def _fix(self) -> int:
        """Return the quality of the fix. UNAVAILABLE without a fix."""
        quality: int = self._require("quality", "fix")
        if not quality:
            visible = sum(self._receiver.in_view(trio.current_time(), self.attributes.max_age_s).values())
            raise self._unavailable(
                f"the receiver has no fix; it sees {visible} satellites",
                "give its antenna a clear view of the sky, and wait some minutes after a cold start",
            )
        return quality

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Return the position of the last fix; the altitude is above mean sea level, NaN if the fix has none."""
        await trio.lowlevel.checkpoint()
        self._fix()
        latitude, longitude = self._require("position", "position")
        altitude = self._get("altitude")
        return GeoPosition(GeoPoint(latitude, longitude), math.nan if altitude is None else altitude)

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the velocity over ground (m/s): x to the east, y to the north."""
        await trio.lowlevel.checkpoint()
        self._fix()
        speed: float = self._require("speed", "speed")
        course = self._get("course")
        if course is None:
            if speed > AT_REST:
                self._require("course", "course")
            return Vector3()
        angle = math.radians(course)
        return Vector3(speed * math.sin(angle), speed * math.cos(angle), 0.0)

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Return degrees from true north: the heading if the receiver sends it (HDT), else the direction of movement.

        A receiver at rest has no direction of movement.
        """
        await trio.lowlevel.checkpoint()
        if (heading := self._get("heading")) is not None:
            return float(heading)
        self._fix()
        return float(self._require("course", "heading or course; at rest it has none"))

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Raise Unsupported."""
        raise Unsupported(f"{self.name} does not measure rotation")

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """Return dilutions of precision, fix quality, and standard deviations (`latitude_m`...) if available."""
        await trio.lowlevel.checkpoint()
        quality: int = self._require("quality", "fix")
        error = self._get("error")
        names = ("latitude_m", "longitude_m", "altitude_m")
        return Accuracy(
            dict(zip(names, error, strict=True)) if error is not None else {},
            position_hdop=self._get("hdop"),
            position_vdop=self._get("vdop"),
            position_nmea_gga_fix=quality,
        )

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Report support of position, velocity and heading."""
        await trio.lowlevel.checkpoint()
        return MovementProperties(
            position_supported=True, linear_velocity_supported=True, compass_heading_supported=True
        )

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return the available measurements, plus fix, satellites, dilutions of precision and time."""
        await trio.lowlevel.checkpoint()
        quality = self._fix()
        now, receiver = trio.current_time(), self._receiver
        readings: dict[str, Any] = {"fix_quality": quality, "fix": QUALITY.get(quality, "unknown")}
        for name, read in (
            ("position", self.get_position),
            ("linear_velocity", self.get_linear_velocity),
            ("compass", self.get_compass_heading),
        ):
            try:
                readings[name] = await read()
            except MachineError:  # currently not available
                continue
        if (position := readings.get("position")) is not None:
            readings["position"] = position.coordinate
        names = {"altitude": "altitude", "satellites_used": "satellites_used", "speed": "speed_m_per_s", "utc": "utc"}
        names |= {"hdop": "hdop", "vdop": "vdop", "pdop": "pdop"}
        readings |= {key: value for name, key in names.items() if (value := self._get(name)) is not None}
        if in_view := receiver.in_view(now, self.attributes.max_age_s):
            readings["satellites_in_view"] = sum(in_view.values())
            readings |= {f"satellites_in_view_{system}": count for system, count in in_view.items()}
        return readings

    async def get_status(self) -> Mapping[str, Any]:
        """Return the number of accepted sentences, and of rejected ones by reason."""
        await trio.lowlevel.checkpoint()
        return {"sentences": self._receiver.sentences, "rejected": dict(self._receiver.rejected)}
