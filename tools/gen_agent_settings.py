"""Write docs/reference/agent-settings.md from the records of the agent's settings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from schema.agent.reading import NETWORKS, SECTIONS
from schema.agent.records import AdditionalNetwork, AdvancedSettings, MaintenanceWindow, SettingsSection
from schema.agent.rules import extra_of, fields_of
from tools.gen_config_reference import meanings_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "agent-settings.md"

HEAD = """\
# Settings of the agent

<!-- Written by tools/gen_agent_settings.py from schema/agent; `make generate` brings it up to date. -->

The key `agent` of a machine's configuration holds the five sections below. The defaults file of a manufacturer
(`/etc/machine-defaults.json`) has the same sections at its top level. For each key the last of these wins: the built-in
default, the defaults file, the configuration from the cloud.

```json
{
  "version_control": {"agent": "stable", "machine-server": "1.4.2"},
  "network_configuration": {"hotspot_prefix": "lab", "user_idle_minutes": 10},
  "additional_networks": {"office": {"type": "wifi", "ssid": "office", "psk": "correct horse", "priority": 10}}
}
```

The same check takes place wherever a configuration is written: in `machine check`, in `machine cloud config set`, at a
save in the cloud (in the log of the machine) and in the editor. Only the device knows whether it allows an `http://`
URL, so that this is a warning there. machine-server runs the rest of a configuration whose section `agent` is wrong.

A version that is not valid, or that was never published for the device, changes nothing: the device keeps what it
runs, and `machine agent status`, `machine cloud agent status` and the machine's page name the reason. An agent in
`--dev-mode` does not apply the sections of the network and the system, and reports those that are set.

An invalid value does not affect the rest. Its key keeps the value of the defaults file or the built-in default, and the
problem is reported with the path, such as `agent.network_configuration.hotspot_prefix` (`defaults` instead of `agent`
for the defaults file), the value, and a remedy. An additional network with an invalid value is left out as a whole. An
unknown key is reported with the most similar valid key. `null` means the same as an absent key. Passwords and the
values of environment variables are never shown.

A time is a number in the unit of its row, or text with units such as `"1h20m"` or `"90s"`.
"""

TABLE = "| key | type | default | range | unit | meaning |\n|---|---|---|---|---|---|"

WINDOWS = """\
Each element of `maintenance_windows` is an object with the keys below, such as
`{"days": ["sat", "sun"], "start": "22:00", "end": "04:00"}`. If one window is not valid, the whole list does not count,
so that a mistake never keeps a device from being updated: then maintenance is allowed at any time, as far as the
maintenance sensor and leases allow it."""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    sections = [*SECTIONS.items()]
    sections.insert(3, (NETWORKS, AdditionalNetwork))
    for name, cls in sections:
        yield f"## {name}\n\n{inspect.getdoc(cls)}\n"
        if name == NETWORKS:
            yield "The keys of the section are labels of your choice. Each value has these keys:\n"
        yield TABLE
        yield from _rows(cls)
        yield ""
        if cls is AdvancedSettings:
            yield f"{WINDOWS}\n\n{TABLE}"
            yield from _rows(MaintenanceWindow)
            yield ""


def _rows(cls: type[SettingsSection]) -> Iterator[str]:
    meanings = meanings_of(cls)
    for key, field in fields_of(cls).items():
        extra = extra_of(field)
        kind = field.type.type if isinstance(field.type, types.Metadata) else field.type
        time = extra.get("time")
        cells = (
            f"`{key}`",
            "time" if time else _type(kind),
            "**required**" if field.required else _default(field, time.seconds if time else 1),
            time.allowed if time else extra["rule"].allowed if "rule" in extra else _range(kind),
            time.name if time else extra.get("unit", ""),
            meanings[field.name],
        )
        yield f"| {' | '.join(cells)} |"


def _type(kind: types.Type) -> str:
    if isinstance(kind, types.UnionType):
        return f"{_type(kind.types[0])}, or unset"
    if isinstance(kind, types.VarTupleType) and isinstance(kind.item_type, types.StructType):
        return "list of objects"
    return {
        types.BoolType: "true or false",
        types.IntType: "whole number",
        types.DictType: "object of text",
        types.VarTupleType: "list of text",
    }.get(type(kind), "text")


def _default(field: types.Field, seconds: float) -> str:
    default: Any = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if default is None:
        return "unset"
    if default in ("", (), {}):
        return "empty"
    if isinstance(default, tuple):
        return f"`{', '.join(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default / seconds:g}`" if isinstance(default, int | float) else f"`{default}`"


def _range(kind: types.Type) -> str:
    if isinstance(kind, types.LiteralType):
        return ", ".join(f"`{value}`" if value else "empty" for value in kind.values)
    return f"{kind.ge} to {kind.le}" if isinstance(kind, types.IntType) else ""
