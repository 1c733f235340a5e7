"""Every registered model with the JSON Schema of its attributes, as a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from runtime.registry import Registry
from schema.attributes import json_schema
from schema.names import API, Model


def resources(registry: Registry) -> list[dict[str, Any]]:
    """`{"api", "model", "attribute_schema"}` by API and model; the schema is absent if the model reads nothing."""
    entries = []
    for api, model in registry.pairs():
        cls = registry.find(API.parse(api), Model.parse(model))
        entry: dict[str, Any] = {"api": api, "model": model}
        if (schema := json_schema(cls.Config)) is not None:
            entry["attribute_schema"] = schema
        entries.append(entry)
    return entries


def dump_resources(path: Path) -> None:
    """Write the built-in models to `path`, mode 0600, indented with tabs; OSError if it cannot be written."""
    text = json.dumps(resources(Registry()), indent="\t", ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)
