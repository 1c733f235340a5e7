"""The configuration with which a machine uses a trained model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

PACKAGE_TYPE = "ml_model"
API_MODEL, API_VISION = "rdk:service:mlmodel", "rdk:service:vision"


def with_model(document: Mapping[str, Any], package: str, version: str) -> dict[str, Any]:
    """Return a copy of `document` in which a machine uses `version` of a package with an ONNX model.

    An entry for the package gets the version, and services that use it stay. What is missing is added: the package, an
    `onnx` model service, and an `mlmodel` vision service, with names that are free.
    """
    packages, services = _entries(document, "packages"), _entries(document, "services")
    own = next((entry for entry in packages if _text(entry, "package") == package), None)
    if own is None:
        name = _free(package.partition("/")[2] or package, (_text(entry, "name") for entry in packages))
        packages.append({"name": name, "package": package, "version": version, "type": PACKAGE_TYPE})
    else:
        name = _text(own, "name")
        packages[packages.index(own)] = {**own, "version": version}
    names = [_text(entry, "name") for entry in services]
    place = f"${{packages.{PACKAGE_TYPE}.{name}}}"
    model = next((entry for entry in services if place in str(entry.get("attributes", ""))), None)
    if model is None:
        model = {
            "name": _free(f"{name}-model", names),
            "api": API_MODEL,
            "model": "onnx",
            "attributes": {"model_path": f"{place}/model.onnx", "label_path": f"{place}/labels.txt"},
        }
        services.append(model)
    if not any(_attribute(entry, "mlmodel_name") == _text(model, "name") for entry in services):
        vision = {"api": API_VISION, "model": "mlmodel", "attributes": {"mlmodel_name": _text(model, "name")}}
        services.append({"name": _free(name, [*names, _text(model, "name")]), **vision})
    return {**document, "packages": packages, "services": services}


def _entries(document: Mapping[str, Any], section: str) -> list[Any]:
    entries = document.get(section)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _attribute(entry: Mapping[str, Any], key: str) -> str:
    attributes = entry.get("attributes")
    return _text(attributes, key) if isinstance(attributes, dict) else ""


def _free(name: str, taken: Iterable[str]) -> str:
    """Return a valid name that is not taken, as similar to `name` as possible."""
    base, used = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:50] or "model", set(taken)
    return next(
        candidate
        for number in range(1, len(used) + 3)
        if (candidate := f"{base}-{number}" if number > 1 else base) not in used
    )
