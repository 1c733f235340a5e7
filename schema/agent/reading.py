"""Reading of the settings from the defaults file of the manufacturer and from the cloud.

A later layer wins for each field: built-in defaults, then the defaults file, then the cloud. The deprecated
provisioning file of the reference, which is not read, would be a layer before the defaults file: its few keys, renamed
to those of `network_configuration`.

An invalid value never affects another field: the field keeps the value of the earlier layers. The same is true for an
entry of `additional_networks` as a whole, because a network without its wrong password or address would be a different
network, possibly an open one. null means the same as an absent key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from msgspec.inspect import Field

from schema.agent.records import (
    AdditionalNetwork,
    AdvancedSettings,
    NetworkConfiguration,
    Settings,
    SettingsSection,
    SystemConfiguration,
    VersionControl,
)
from schema.agent.rules import MINUTE, TimeUnit, extra_of, fields_of
from schema.decoding.conversion import conform
from schema.decoding.depth import check_depth
from schema.decoding.report import DecodingReport, did_you_mean, join, shown
from schema.durations import format_duration, parse_duration
from schema.errors import ConfigError
from schema.versions import VersionForm, version_form

SECTIONS: Final[Mapping[str, type[SettingsSection]]] = {
    "version_control": VersionControl,
    "advanced_settings": AdvancedSettings,
    "network_configuration": NetworkConfiguration,
    "system_configuration": SystemConfiguration,
}
NETWORKS: Final = "additional_networks"
LONGEST_LABEL: Final = 64
"""Characters of the label of a network."""
OTHER_NAMES: Final[Mapping[str, str]] = {"viam-server": "machine-server"}
"""Keys of the reference in `version_control`, and the keys that they stand for."""
_REBOOT: Final = "device_reboot_after_offline"


def read_settings(
    defaults: object, cloud: object, *, allow_http: bool = False
) -> tuple[Settings, tuple[ConfigError, ...]]:
    """Return the settings in force and the problems of both documents.

    Both are decoded JSON with the sections at the top level: `defaults` is the defaults file, `cloud` is the value of
    the key `agent` in the machine's configuration; None means that there is none. `allow_http` is the consent of the
    device to install programs from `http://` URLs, which no document can give. A problem has a path that begins with
    `defaults` or `agent`, the value (masked if it is secret) and a remedy. No document raises.
    """
    report = DecodingReport()
    layers = [
        _Reader(report, allow_http).read(root, document)
        for root, document in (("defaults", defaults), ("agent", cloud))
    ]
    merged = {
        name: {key: item.value for layer in layers for key, item in layer[name].items()}
        for name in (*SECTIONS, NETWORKS)
    }
    networks = merged.pop(NETWORKS)
    _correct_reboot(merged["network_configuration"], layers, report)
    sections: dict[str, Any] = {name: SECTIONS[name](**fields) for name, fields in merged.items()}
    return Settings(**sections, additional_networks=networks), tuple(report.problems)


def check_settings(section: object) -> Iterator[DecodingReport]:
    """Check the key `agent` of a configuration before a device has it; the last yield has the whole report.

    Yields after each piece, so that the caller can do other work in between. The problems are those of `read_settings`,
    except that an `http://` URL is a warning: only the device knows whether it allows it. No document raises.
    """
    report = DecodingReport()
    reader = _Reader(report, None)
    networks = section.get(NETWORKS) if isinstance(section, Mapping) else None
    pieces: list[object] = [section]
    if isinstance(section, Mapping) and isinstance(networks, Mapping):
        rest = {key: value for key, value in section.items() if key != NETWORKS}
        pieces = [rest, *({NETWORKS: {label: network}} for label, network in networks.items())]
    for piece in pieces:
        layer = reader.read("agent", piece)
        if layer["network_configuration"]:
            fields = {key: item.value for key, item in layer["network_configuration"].items()}
            _correct_reboot(fields, (layer,), report)
        yield report


@dataclass(frozen=True)
class _Item:
    """Valid value of a document, and where it is."""

    value: Any
    path: str


_Layer = Mapping[str, dict[str, _Item]]  # by section, then by name of the field or label of the network


@dataclass(frozen=True)
class _Reader:
    """Reader of one document. Each method reports what is invalid and returns the rest."""

    report: DecodingReport
    allow_http: bool | None  # None: not known, so that http:// is a warning

    def read(self, root: str, document: object) -> _Layer:
        layer: _Layer = {name: {} for name in (*SECTIONS, NETWORKS)}
        try:
            check_depth(document)
        except ConfigError as error:
            self.report.problem(join(root, error.path) if error.path else root, error.reason, remedy=error.remedy)
            return layer
        for name, section in self.members(document, layer.keys(), root).items():
            path = join(root, name)
            if name == NETWORKS:
                networks = self.members(section, None, path)
                items = {label: self.network(label, network, join(path, label)) for label, network in networks.items()}
            else:
                items = self.section(SECTIONS[name], section, path)
            layer[name].update({key: item for key, item in items.items() if item is not None})
        return layer

    def members(self, value: object, keys: AbstractSet[str] | None, path: str) -> dict[str, Any]:
        """Return the members of an object that have one of `keys` (None: any key), without those that are null."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):  # not shown: it may be a secret at the wrong level
            self.report.problem(path, "is not an object", remedy="write an object or remove the key")
            return {}
        if keys is not None:
            for key in value:
                if key not in keys:
                    remedy = did_you_mean(key, keys - value.keys()) or "remove the key"
                    self.report.problem(join(path, key), "unknown key", remedy=remedy)
        return {key: item for key, item in value.items() if item is not None and (keys is None or key in keys)}

    def network(self, label: str, network: object, path: str) -> _Item | None:
        if not 1 <= len(label) <= LONGEST_LABEL or not label.isprintable():
            self.report.problem(
                path, "is not a label of a network", remedy=f"write 1 to {LONGEST_LABEL} printable characters"
            )
            return None
        members = self.members(network, fields_of(AdditionalNetwork).keys(), path)
        decoded = conform(AdditionalNetwork, members, path, self.report) if isinstance(network, Mapping) else None
        return None if decoded is None else _Item(decoded, path)

    def section(self, cls: type[SettingsSection], section: object, path: str) -> dict[str, _Item | None]:
        fields = fields_of(cls)
        other_names = OTHER_NAMES if cls is VersionControl else {}
        members = self.members(section, fields.keys() | other_names.keys(), path)
        items = {}
        for key, value in members.items():
            name = other_names.get(key, key)
            if name != key and name in members:
                self.report.problem(
                    join(path, key), f"is another name of {name!r}, which is present too", remedy="keep one"
                )
            else:
                items[fields[name].name] = self.field(cls, fields[name], value, join(path, key))
        return items

    def field(self, cls: type[SettingsSection], field: Field, value: object, path: str) -> _Item | None:
        attempt = DecodingReport()
        time = extra_of(field).get("time")
        if time is not None:
            result: Any = _seconds(value, time, path, attempt)
        else:
            record = conform(cls, {field.encode_name: value}, "", attempt)
            result = getattr(record, field.name, None)
            if cls is VersionControl and record and version_form(result) is VersionForm.HTTP:
                if self.allow_http is None:
                    self.report.warn(
                        path,
                        f"{shown(value, path)} is used only if the device allows it: others could replace the program "
                        "on its way",
                        value=value,
                        remedy='write an https:// URL, or "allow_http": true in the defaults file of the device',
                    )
                elif not self.allow_http:
                    attempt.problem(
                        field.encode_name,
                        f"this device does not allow {shown(value, path)}: others could replace the program on its way",
                        value=value,
                        remedy="write an https:// URL",
                    )
        problems = (*attempt.problems, *attempt.warnings)  # an unknown key in an entry may change what it means
        for problem in problems:
            self.report.problem(
                path + problem.path.removeprefix(field.encode_name),
                problem.reason,
                value=problem.value,
                remedy=problem.remedy,
            )
        return None if problems else _Item(result, path)


def _seconds(value: object, unit: TimeUnit, path: str, report: DecodingReport) -> float | None:
    """Return the seconds of a number of `unit`, or of a text with units."""
    seconds = math.nan
    try:
        if isinstance(value, str):
            seconds = parse_duration(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value * unit.seconds
    except (ValueError, OverflowError):
        pass
    if not math.isfinite(seconds):
        remedy = f'write a number of {unit.name}, or text such as "1h20m"'
        report.problem("", f"{shown(value, path)} is not a duration", value=value, remedy=remedy)
        return None
    if not unit.includes(seconds):
        report.problem("", f"{shown(value, path)} is out of range", value=value, remedy=f"write {unit.allowed}")
        return None
    return seconds


def _correct_reboot(fields: dict[str, Any], layers: Sequence[_Layer], report: DecodingReport) -> None:
    """Replace a reboot timer that is too short for the other timers, which may be from another layer."""
    if NetworkConfiguration(**fields).reboots_in_time():
        return
    latest, *earlier = (
        layer["network_configuration"][_REBOOT]
        for layer in reversed(layers)
        if _REBOOT in layer["network_configuration"]
    )
    del fields[_REBOOT]
    needed = NetworkConfiguration(**fields).shortest_reboot
    report.problem(
        latest.path,
        f"{format_duration(latest.value)} is shorter than offline_before_starting_hotspot_minutes or user_idle_minutes",
        value=format_duration(latest.value),
        remedy=f"write 0, or at least {needed / MINUTE:g} minutes",
    )
    valid = [item.value for item in earlier if item.value == 0 or item.value >= needed]
    fields[_REBOOT] = valid[0] if valid else 0.0
