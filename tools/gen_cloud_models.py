"""Write catalogue/models.json: the built-in models with their attributes, and the document's other sections.

`python tools/gen_cloud_models.py` writes the file, with `--check` it only says whether it is current.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, cast

from runtime.dump import resources
from runtime.registry import Registry
from schema.attributes import json_schema
from schema.auth import Auth, AuthHandler, ExternalAuth
from schema.jobs import Job
from schema.log import LogConfiguration, LogRule
from schema.machine import MachineDocument
from schema.maintenance import Maintenance
from schema.modules import Module, ModuleLimits
from schema.names import API, Model
from schema.network import Network, Sessions, TunnelEndpoint
from schema.packages import Package
from schema.remotes import Remote, RemoteAuth, RemoteCredentials
from schema.resources import ServiceConfig
from schema.tracing import Tracing

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "catalogue" / "models.json"
OBJECTS = {"network": Network, "auth": Auth, "maintenance": Maintenance, "tracing": Tracing}
LISTS = {"modules": Module, "remotes": Remote, "packages": Package, "jobs": Job, "log": LogRule}
INNER = (
    AuthHandler, ExternalAuth, LogConfiguration, ModuleLimits, Sessions, TunnelEndpoint, RemoteAuth, RemoteCredentials,
    ServiceConfig,
)  # fmt: skip
DURATION = 'such as "10s" or "1h30m"'


def main() -> int:
    """Write or check; 1 if the file is not current."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not FILE.exists() or FILE.read_text() != text:
            print(f"{FILE.relative_to(ROOT)} is not current: run python tools/gen_cloud_models.py")
            return 1
        return 0
    FILE.write_text(text)
    return 0


def page() -> str:
    """The whole file."""
    found = {
        "document": document(),
        "models": [{**_durations(one), "attributes": _class_of(one)} for one in resources(Registry())],
    }
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace('{"api"', '\n{"api"') + "\n"


def _class_of(entry: dict[str, Any]) -> str:
    """Where the class of a model's attributes is, as `module:class`."""
    config = Registry().config(API.parse(entry["api"]), Model.parse(entry["model"]))
    return f"{config.__module__}:{config.__qualname__}"


def document() -> dict[str, Any]:
    """The JSON Schema of the document; `components` and `services` are known to the editor itself."""
    meanings = _meanings()
    definitions: dict[str, Any] = {}
    for kind in (*OBJECTS.values(), *LISTS.values(), *INNER):
        schema = json_schema(kind)
        assert schema is not None, kind
        definitions.update(_durations(schema)["$defs"])
        for key, meaning in meanings(kind).items():
            if key in definitions[kind.__name__]["properties"]:
                definitions[kind.__name__]["properties"][key]["description"] = meaning
    tops = meanings(MachineDocument)
    properties: dict[str, Any] = {}
    for key in tops:
        if key in OBJECTS:
            properties[key] = {"$ref": f"#/$defs/{OBJECTS[key].__name__}"}
        elif key in LISTS:
            properties[key] = {"type": "array", "items": {"$ref": f"#/$defs/{LISTS[key].__name__}"}}
        elif isinstance(getattr(MachineDocument(), key), bool):
            properties[key] = {"type": "boolean", "default": False}
        elif key in ("agent", "triggers"):
            properties[key] = {"type": "object" if key == "agent" else "array"}
        else:
            continue
        properties[key]["description"] = tops[key]
    return {"type": "object", "properties": properties, "$defs": definitions}


def _meanings() -> Any:
    """The reader of the strings after fields, shared with the reference page of the configuration."""
    spec = importlib.util.spec_from_file_location(
        "gen_config_reference", Path(__file__).with_name("gen_config_reference.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Any, module)._meanings


def _durations(value: Any) -> Any:
    """Durations are texts or numbers of nanoseconds, which msgspec's schema does not say."""
    if isinstance(value, dict):
        made = {key: _durations(one) for key, one in value.items()}
        if made.get("description") == DURATION:
            made = {key: one for key, one in made.items() if key not in ("minimum", "maximum", "exclusiveMinimum")}
            made.pop("default", None)  # in seconds, which no document writes
            made["type"] = ["string", "number"]
        return made
    return [_durations(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    raise SystemExit(main())
