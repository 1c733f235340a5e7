"""Write catalogue/models.json: the built-in models with their attributes, and the document's other sections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runtime.engine.registry import Registry
from runtime.models import BUILTIN
from runtime.server.dump import resources
from schema.attributes import json_schema
from schema.document.auth import Auth, AuthHandler, ExternalAuth
from schema.document.jobs import Job
from schema.document.log import LogConfiguration, LogRule
from schema.document.machine import MachineDocument
from schema.document.maintenance import Maintenance
from schema.document.modules import Module, ModuleLimits
from schema.document.network import Network, Sessions, TunnelEndpoint
from schema.document.packages import Package
from schema.document.remotes import Remote, RemoteAuth, RemoteCredentials
from schema.document.resources import ServiceConfig
from schema.document.tracing import Tracing
from schema.names import API, Model
from tools import gen_config_reference

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "catalogue" / "models.json"
OBJECTS = {"network": Network, "auth": Auth, "maintenance": Maintenance, "tracing": Tracing}
LISTS = {"modules": Module, "remotes": Remote, "packages": Package, "jobs": Job, "log": LogRule}
INNER = (
    AuthHandler, ExternalAuth, LogConfiguration, ModuleLimits, Sessions, TunnelEndpoint, RemoteAuth, RemoteCredentials,
    ServiceConfig,
)  # fmt: skip
DURATION = 'such as "10s" or "1h30m"'


def page() -> str:
    """Return the text of the file."""
    content = {
        "document": document(),
        "models": [
            {**_durations(resource), "attributes": _class_of(resource)} for resource in resources(Registry(BUILTIN))
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace('{"api"', '\n{"api"') + "\n"


def _class_of(entry: dict[str, Any]) -> str:
    """Return the class of a model's attributes as `module:class`."""
    config = Registry(BUILTIN).config(API.parse(entry["api"]), Model.parse(entry["model"]))
    return f"{config.__module__}:{config.__qualname__}"


def document() -> dict[str, Any]:
    """Return the JSON Schema of the document; the editor itself handles `components` and `services`."""
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
    """Return the reader of field docstrings, shared with the configuration reference page."""
    return gen_config_reference.meanings_of


def _durations(value: Any) -> Any:
    """Let durations be texts or numbers of nanoseconds, which msgspec's schema does not express."""
    if isinstance(value, dict):
        result = {key: _durations(item) for key, item in value.items()}
        if result.get("description") == DURATION:
            result = {
                key: item for key, item in result.items() if key not in ("minimum", "maximum", "exclusiveMinimum")
            }
            result.pop("default", None)  # defaults are in seconds, a form that documents do not use
            result["type"] = ["string", "number"]
        return result
    return [_durations(item) for item in value] if isinstance(value, list) else value
