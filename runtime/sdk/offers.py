"""The models that a module offers: the classes of its drivers, and their description for the protocol."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from engine import BASES, Resource
from rpc.api import APIS
from runtime.sdk.api import own_bases
from schema import API, ConfigError, ErrorKind, MachineError, Model


class OfferedDrivers:
    """The drivers of a module by API and model.

    Raises MachineError (INVALID) if there are none, or for a class that is not a driver, has no model, has no known
    API, or has the same model as another.
    """

    def __init__(self, drivers: Iterable[type[Resource]]) -> None:
        self._classes: dict[tuple[API, Model], type[Resource]] = {}
        for cls in drivers:
            self._add(cls)
        if not self._classes:
            raise MachineError(
                "the module has no drivers", kind=ErrorKind.INVALID, remedy="pass the classes of its drivers"
            )

    def _add(self, cls: type[Resource]) -> None:
        candidate: Any = cls
        if not (isinstance(candidate, type) and issubclass(candidate, Resource)):
            raise _driver_error(
                f"{cls!r} is not a driver",
                "pass classes derived from engine.components or engine.services",
            )
        if cls.MODEL is None:
            raise _driver_error(
                f"{cls.__name__} has no model", 'decorate it with engine.resource.model("acme:demo:name")'
            )
        api: API | None = getattr(cls, "API", None)
        if api is None or not (api in BASES or api in own_bases):
            raise _driver_error(
                f"{cls.__name__} has no known API",
                "derive it from a class of engine.components, or see own_api",
            )
        if (other := self._classes.get((api, cls.MODEL))) is not None:
            raise _driver_error(
                f"{cls.__name__} and {other.__name__} are both {cls.MODEL}", "give one of them another model"
            )
        self._classes[api, cls.MODEL] = cls

    def find(self, api: API, model: Model, path: str = "model") -> type[Resource]:
        """Return the class for a model of an API; raises ConfigError, which lists the offers, if there is none."""
        cls = self._classes.get((api, model))
        if cls is None:
            offered = ", ".join(f"{offered_model} ({offered_api})" for offered_api, offered_model in self._classes)
            raise ConfigError(
                path, f"this module has no model {model} of {api}", value=str(model), remedy=f"use {offered}"
            )
        return cls

    @property
    def apis(self) -> list[API]:
        """The APIs of the drivers, without duplicates."""
        return sorted({api for api, _ in self._classes})

    def handlers(self) -> list[Mapping[str, Any]]:
        """Return the offers in the form of the protocol: each API with its service and its models."""
        return [
            {
                "subtype": {"subtype": api, "proto_service": APIS[api].service},
                "models": [str(model) for of, model in self._classes if of == api],
            }
            for api in self.apis
        ]

    def describe(self) -> list[dict[str, str]]:
        """Return the offers in the form of meta.json: `api`, `model` and the first line of the class's docstring."""
        return [
            {
                "api": str(api),
                "model": str(model),
                "short_description": (inspect.getdoc(cls) or "").partition("\n")[0],
            }
            for (api, model), cls in self._classes.items()
        ]


def _driver_error(message: str, remedy: str) -> MachineError:
    return MachineError(message, kind=ErrorKind.INVALID, remedy=remedy)
