"""What a module offers: the classes of its drivers, and how the protocol names them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from rpc.api.table import APIS
from runtime.apis import BASES
from runtime.module.api import own_bases
from runtime.resource import Resource
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.names import API, Model


class Offers:
    """The drivers of one module by API and model.

    Raises MachineError (INVALID) if there is none, or for a class that is no driver, names no model, has no published
    API or has the same model as another.
    """

    def __init__(self, drivers: Iterable[type[Resource]]) -> None:
        self._classes: dict[tuple[API, Model], type[Resource]] = {}
        for cls in drivers:
            self._add(cls)
        if not self._classes:
            raise MachineError("the module offers nothing", kind=ErrorKind.INVALID, remedy="name its drivers")

    def _add(self, cls: type[Resource]) -> None:
        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, Resource)):
            raise _refused(f"{cls!r} is no driver", "give classes derived from runtime.components or runtime.services")
        if cls.MODEL is None:
            raise _refused(
                f"{cls.__name__} names no model", 'decorate it with runtime.resource.model("acme:demo:name")'
            )
        api: API | None = getattr(cls, "API", None)
        if api is None or not (api in BASES or api in own_bases):
            raise _refused(
                f"{cls.__name__} has no known API", "derive it from a class of runtime.components, or see own_api"
            )
        if (other := self._classes.get((api, cls.MODEL))) is not None:
            raise _refused(
                f"{cls.__name__} and {other.__name__} are both {cls.MODEL}", "give one of them another model"
            )
        self._classes[api, cls.MODEL] = cls

    def find(self, api: API, model: Model, path: str = "model") -> type[Resource]:
        """The class for the pair; ConfigError that lists what there is otherwise."""
        found = self._classes.get((api, model))
        if found is None:
            known = ", ".join(f"{one} ({of})" for of, one in self._classes)
            raise ConfigError(
                path, f"this module has no model {model} of {api}", value=str(model), remedy=f"use {known}"
            )
        return found

    @property
    def apis(self) -> list[API]:
        """Each API that a driver is for, once."""
        return sorted({api for api, _ in self._classes})

    def handlers(self) -> list[Mapping[str, Any]]:
        """As the protocol tells a machine: each API with its service and its models."""
        return [
            {
                "subtype": {"subtype": api, "proto_service": APIS[api].service},
                "models": [str(model) for of, model in self._classes if of == api],
            }
            for api in self.apis
        ]

    def describe(self) -> list[dict[str, str]]:
        """As meta.json lists models: `api`, `model` and the first line of what the class says of itself."""
        return [
            {
                "api": str(api),
                "model": str(model),
                "short_description": (inspect.getdoc(cls) or "").partition("\n")[0],
            }
            for (api, model), cls in self._classes.items()
        ]


def _refused(message: str, remedy: str) -> MachineError:
    return MachineError(message, kind=ErrorKind.INVALID, remedy=remedy)
