"""Attributes of `navigation`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from schema import Attributes, Geometry, GeoPoint, decode_frame
from schema.decoding import DecodingReport


class Store(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where locations, routes and zones are kept."""

    type: Literal["memory"] = "memory"  # until the service stops; `mongodb` is not built


class PointOnGlobe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point in degrees."""

    latitude: Annotated[float, msgspec.Meta(ge=-85, le=85)]  # degrees, north is positive
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]  # degrees, east is positive


class ShapesAtPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shapes at a point, x to the east and y to the north of it (mm)."""

    location: PointOnGlobe  # the point
    geometries: tuple[dict[str, Any], ...] = ()  # shapes as in frames: `type`, sizes in mm, `translation`, `label`

    def shapes(self) -> tuple[GeoPoint, list[Geometry]]:
        """Return the point and the shapes. ValueError for a shape that is wrong."""
        shapes = []
        for number, raw in enumerate(self.geometries):
            report = DecodingReport()
            frame = decode_frame({"geometry": raw}, f"geometries.{number}", report)
            if report.problems or frame is None or frame.geometry is None:
                raise ValueError(str(report.problems[0]) if report.problems else f"geometries.{number} has no shape")
            shapes.append(frame.geometry)
        return GeoPoint(self.location.latitude, self.location.longitude), shapes


class NavigationConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the navigation service."""

    base: str  # name of the base that is driven
    movement_sensor: str = ""  # name of the movement sensor that measures position and heading
    map_type: Literal["GPS", "None", ""] = "GPS"  # `None`: the base is not driven
    store: Store = Store()  # where locations, routes and zones are kept
    meters_per_sec: Annotated[float, msgspec.Meta(ge=0.05, le=10)] = 0.3  # highest speed (m/s)
    degs_per_sec: Annotated[float, msgspec.Meta(ge=1, le=360)] = 20.0  # highest turning speed (degrees/s)
    plan_deviation_m: Annotated[float, msgspec.Meta(ge=0.3, le=1000)] = 2.6  # m off the plan, for a new one
    position_polling_frequency_hz: Annotated[float, msgspec.Meta(ge=0.1, le=10)] = 1.0  # positions in a second (Hz)
    obstacles: tuple[ShapesAtPoint, ...] = ()  # where the base must not be
    bounding_regions: tuple[ShapesAtPoint, ...] = ()  # where the base must be; without any, everywhere is allowed

    NOT_BUILT: ClassVar[Mapping[str, str]] = {
        "motion_service": "another motion service than the own one",
        "obstacle_detectors": "obstacles that cameras see",
        "obstacle_polling_frequency_hz": "obstacles that cameras see",
        "log_file_path": "a log file of the service; use the log of the machine",
    }

    def __post_init__(self) -> None:
        if self.on_globe and not self.movement_sensor:
            raise ValueError("movement_sensor is missing; it is needed unless map_type is None")
        for name in ("obstacles", "bounding_regions"):
            for number, each in enumerate(getattr(self, name)):
                try:
                    each.shapes()
                except ValueError as error:
                    raise ValueError(f"{name}.{number}: {error}") from None

    @property
    def on_globe(self) -> bool:
        """Whether the base can be driven."""
        return self.map_type != "None"

    def requires(self) -> list[str]:
        """Require the base and the movement sensor."""
        return [self.base, *([self.movement_sensor] if self.movement_sensor else [])]
