"""Conditions under which the machine may be reconfigured or restarted."""

from __future__ import annotations

from schema.document.section import Section
from schema.errors import ConfigError
from schema.names import ResourceName


class Maintenance(Section, frozen=True, kw_only=True):
    """Sensor whose readings tell whether maintenance is currently allowed."""

    sensor_name: str
    """Full name of the sensor: `rdk:component:sensor/<name>`."""
    maintenance_allowed_key: str
    """Key of the readings whose value is true while maintenance is allowed."""

    def __post_init__(self) -> None:
        ResourceName.parse(self.sensor_name, path="sensor_name")
        if not self.maintenance_allowed_key:
            raise ConfigError("maintenance_allowed_key", "is empty", remedy="name the key of the sensor's readings")

    @property
    def sensor(self) -> ResourceName:
        """Parsed name of the sensor."""
        return ResourceName.parse(self.sensor_name, path="sensor_name")
