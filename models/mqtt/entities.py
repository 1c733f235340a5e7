"""Documents that announce a machine to Home Assistant: one entity for each reading and each control. Pure.

The documents follow "MQTT discovery" of Home Assistant: a retained document at
`<discovery>/<kind of entity>/<device>/<entity>/config` announces an entity, and an empty one removes it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

MOST_READINGS: Final = 64  # of a resource, so that odd readings cannot fill a home with entities
_KEY = re.compile(r"[\w .:/%-]{1,100}")  # names of readings that need no quoting in a template
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

UNITS: Final[Mapping[str, tuple[str, str]]] = {
    "c": ("°C", "temperature"),
    "celsius": ("°C", "temperature"),
    "f": ("°F", "temperature"),
    "fahrenheit": ("°F", "temperature"),
    "k": ("K", "temperature"),
    "pa": ("Pa", "pressure"),
    "hpa": ("hPa", "pressure"),
    "kpa": ("kPa", "pressure"),
    "bar": ("bar", "pressure"),
    "v": ("V", "voltage"),
    "volts": ("V", "voltage"),
    "mv": ("mV", "voltage"),
    "a": ("A", "current"),
    "amps": ("A", "current"),
    "ma": ("mA", "current"),
    "w": ("W", "power"),
    "watts": ("W", "power"),
    "kw": ("kW", "power"),
    "wh": ("Wh", "energy"),
    "kwh": ("kWh", "energy"),
    "hz": ("Hz", "frequency"),
    "mm": ("mm", "distance"),
    "cm": ("cm", "distance"),
    "m": ("m", "distance"),
    "km": ("km", "distance"),
    "s": ("s", "duration"),
    "lux": ("lx", "illuminance"),
    "ppm": ("ppm", ""),
    "kg": ("kg", "weight"),
    "g": ("g", "weight"),
    "percent": ("%", ""),
    "pct": ("%", ""),
    "deg": ("°", ""),
    "degs": ("°", ""),
    "rpm": ("rpm", ""),
}
"""Unit and device class by the last word of a reading's name, where the unit is by convention."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity: its kind (`sensor`, `switch`, ...), its name among those of the resource, and its own settings.

    `key` is the reading that it shows; empty for an entity without one. `commands` is whether it sends commands.
    """

    kind: str
    name: str
    settings: Mapping[str, Any]
    key: str = ""
    commands: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """The machine as Home Assistant shows it. `topic` begins all of its topics; `version` is that of the program."""

    topic: str
    version: str

    @property
    def id(self) -> str:
        """Name that is safe in topics and unique for `topic`."""
        return safe(self.topic)

    def announced(self, prefix: str, resource: str, entity: Entity, expire_s: int) -> tuple[str, bytes]:
        """Return topic and document of an entity. After `expire_s` seconds without a reading, its state is unknown."""
        identity = safe(f"{resource} {entity.name}" if entity.name else resource)
        base = f"{self.topic}/{resource}"
        words = [word for word in re.split(r"[_. ]+", entity.name) if word]
        if "unit_of_measurement" in entity.settings and len(words) > 1 and words[-1].lower() in UNITS:
            del words[-1]  # the unit is shown next to the number
        document: dict[str, Any] = {
            "unique_id": f"{self.id}_{identity}",
            "object_id": _UNSAFE.sub("_", "_".join((self.id, resource, *words))),
            "name": " ".join((resource.replace("/", " "), *words)),  # a pin of a board
            "availability": [{"topic": f"{self.topic}/status"}, {"topic": f"{base}/status"}],
            "availability_mode": "all",
            "device": {
                "identifiers": [self.id],
                "name": self.topic.rpartition("/")[2],
                "manufacturer": "machine-server",
                "sw_version": self.version,
            },
            "origin": {"name": "machine-server", "sw_version": self.version},
            **entity.settings,
        }
        if entity.key:
            document["state_topic"] = f"{base}/state"
            template = f"value_json[{json.dumps(entity.key)}]"
            if entity.kind == "binary_sensor":
                template = f"'ON' if {template} else 'OFF'"
            document["value_template"] = f"{{{{ {template} }}}}"
            if entity.kind in {"sensor", "binary_sensor"}:
                document["expire_after"] = expire_s
        if entity.commands:
            document["command_topic"] = f"{base}/set"
        return self.place(prefix, entity.kind, identity), json.dumps(document, ensure_ascii=False).encode(
            errors="replace"
        )

    def place(self, prefix: str, kind: str, identity: str) -> str:
        """Return the topic that announces an entity; `+` as kind and identity is the pattern of all."""
        return f"{prefix}/{kind}/{self.id}/{identity}/config"

    def is_place(self, prefix: str, topic: str) -> bool:
        """Return whether a topic announces an entity of this device, and may be sent to: a broker may send any."""
        pieces = topic.removeprefix(f"{prefix}/").split("/")
        is_topic = len(pieces) == 4 and not set(topic) & set("+#")
        return is_topic and topic == self.place(prefix, pieces[0], pieces[2])


def read_announcement(payload: bytes) -> tuple[str, bool] | None:
    """Return the topic that begins those of the resource in a document of `Device.announced`, and whether it has
    commands; None for a document of another program, and for anything else that a broker may send.
    """
    try:
        document = json.loads(payload)
        base = str(document["availability"][1]["topic"]).removesuffix("/status")
        is_own = document["origin"]["name"] == "machine-server"
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return (base, "command_topic" in document) if is_own else None


def flat(readings: Any, name: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yield the numbers, texts and truth values of readings, with the names of nested ones joined by dots.

    Numbers that JSON has no form for, or most programs cannot read, become None. Lists and bytes are left out.
    """
    if isinstance(readings, Mapping):
        for key, value in readings.items():
            yield from flat(value, f"{name}.{key}" if name else str(key))
    elif dataclasses.is_dataclass(readings) or hasattr(readings, "__struct_fields__"):
        fields: Sequence[str] = getattr(readings, "__struct_fields__", ()) or [
            field.name for field in dataclasses.fields(readings)
        ]
        yield from flat({key: getattr(readings, key) for key in fields}, name)
    elif isinstance(readings, float):
        yield name, readings if math.isfinite(readings) else None
    elif isinstance(readings, int):
        yield name, readings if readings.bit_length() <= 64 else None
    elif isinstance(readings, str) or readings is None:
        yield name, readings


def state_of(readings: Any) -> dict[str, Scalar]:
    """Return the readings that are published: at most MOST_READINGS, with names that are safe in templates."""
    state: dict[str, Scalar] = {}
    for key, value in flat(readings):
        if _KEY.fullmatch(key) and len(state) < MOST_READINGS:
            state[key] = value
    return state


def entities_of(state: Mapping[str, Scalar]) -> list[Entity]:
    """Return an entity for each reading, with the unit that its name ends with. None tells no kind, so it has none."""
    entities = []
    for key, value in state.items():
        if isinstance(value, bool):
            entities.append(Entity("binary_sensor", key, {}, key))
        elif isinstance(value, int | float):
            unit, device_class = _unit(key)
            settings = {"state_class": "measurement", "unit_of_measurement": unit, "device_class": device_class}
            entities.append(Entity("sensor", key, {name: text for name, text in settings.items() if text}, key))
        elif value is not None:
            entities.append(Entity("sensor", key, {}, key))
    return entities


def safe(name: str) -> str:
    """Return a name for topics and ids; two names never become the same one."""
    replaced = _UNSAFE.sub("_", name)
    return replaced if replaced == name else f"{replaced[:80]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _unit(key: str) -> tuple[str, str]:
    words = re.split(r"[^a-z0-9]+", key.lower())
    unit, device_class = UNITS.get(words[-1], ("", "")) if len(words) > 1 or len(words[-1]) > 2 else ("", "")
    if unit == "%" and "humidity" in words:
        device_class = "humidity"
    return unit, device_class
