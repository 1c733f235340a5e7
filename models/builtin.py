"""The built-in models by API and name, and the class of each model's attributes."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from models.table import ATTRIBUTES
from rpc.api import APIS
from schema import API, Attributes, Model, unknown_model

FILE: Final = "models.json"
"""The file that tools/gen_cloud_models.py generates from the configuration classes."""


class Models(Protocol):
    """The models available to a machine: `Builtin`, or the registry of a running machine."""

    def config(self, api: API, model: Model) -> type[Attributes]:
        """Return the class of the attributes. MachineError if there is no such model, or it cannot be loaded."""
        ...


class Builtin:
    """The models of this version; `table` maps API and model to `module:class` of the attributes."""

    def __init__(self, table: Mapping[tuple[str, str], str]) -> None:
        self._table = table

    def config(self, api: API, model: Model) -> type[Attributes]:
        """Return the class of the attributes. UnknownModel if the model is not built in."""
        path = self._table.get((str(api), str(model)))
        if path is None:
            raise unknown_model(api, model, self._table.keys(), APIS)
        module, _, name = path.partition(":")
        attributes: type[Attributes] = getattr(importlib.import_module(module), name)
        return attributes


@cache
def described() -> Mapping[str, Any]:
    """Return the content of models.json: `models` with their attribute schemas, and the schema of a `document`."""
    content: Mapping[str, Any] = json.loads(files("models").joinpath(FILE).read_text(encoding="utf-8"))
    return content


@cache
def builtin_models() -> Builtin:
    """Return the models of this version."""
    return Builtin(ATTRIBUTES)
