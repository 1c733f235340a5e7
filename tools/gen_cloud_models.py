"""Write models/models.json: the built-in models with their attributes, and the document's other sections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from engine.registry import Registry
from models import BUILTIN
from runtime.server.dump import resources
from schema.attributes import json_schema
from schema.document.log import LogConfiguration
from schema.document.machine import MachineDocument
from schema.document.resources import ServiceConfig
from schema.document.section import Section
from tools import gen_config_reference

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "models" / "models.json"
LEFT_OUT = "cloud"  # the key of the machine's identity, which the cloud does not store
INNER = (ServiceConfig, LogConfiguration)  # in entries of components and services
DURATION = 'such as "10s" or "1h30m"'


def page() -> str:
    """Return the text of the file."""
    content = {
        "document": document(),
        "models": [_durations(resource) for resource in resources(Registry(BUILTIN))],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace('{"api"', '\n{"api"') + "\n"


def document() -> dict[str, Any]:
    """Return the JSON Schema of the document; the editor itself handles `components` and `services`."""
    objects, lists = sections()
    definitions: dict[str, Any] = {}
    for kind in (*objects.values(), *lists.values(), *INNER):
        schema = json_schema(kind)
        assert schema is not None, kind
        definitions.update(_durations(schema)["$defs"])
    for kind in gen_config_reference.sections():
        described = definitions.get(kind.__name__, {"properties": {}})["properties"]
        for key, meaning in gen_config_reference.meanings_of(kind).items():
            if key in described:
                described[key]["description"] = meaning
    tops = gen_config_reference.meanings_of(MachineDocument)
    properties: dict[str, Any] = {}
    for key in tops:
        if key in objects:
            properties[key] = {"$ref": f"#/$defs/{objects[key].__name__}"}
        elif key in lists:
            properties[key] = {"type": "array", "items": {"$ref": f"#/$defs/{lists[key].__name__}"}}
        elif isinstance(getattr(MachineDocument(), key), bool):
            properties[key] = {"type": "boolean", "default": False}
        elif key in ("agent", "triggers"):
            properties[key] = {"type": "object" if key == "agent" else "array"}
        else:
            continue
        properties[key]["description"] = tops[key]
    return {"type": "object", "properties": properties, "$defs": definitions}


def sections() -> tuple[dict[str, type[Section]], dict[str, type[Section]]]:
    """Return the keys of the document whose value is an object, and those of lists of objects, with their classes."""
    objects, lists = {}, {}
    for key, hint in get_type_hints(MachineDocument).items():
        for kind in (hint, *get_args(hint)):
            if isinstance(kind, type) and issubclass(kind, Section) and key != LEFT_OUT:
                (lists if get_origin(hint) is tuple else objects)[key] = kind
    return objects, lists


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
