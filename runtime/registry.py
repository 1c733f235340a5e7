"""Which class implements an API and a model. Built-ins are a table of import paths, imported when first needed.

Drivers of others are found where they are installed or named, and only when a model is wanted that is not built in.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from catalogue.unknown import UnknownModel as UnknownModel
from catalogue.unknown import unknown
from runtime.resource import Attributes, Resource
from schema.errors import ErrorKind, MachineError
from schema.names import API, Model

ENTRY_POINTS: Final = "machine.models"
"""Entry-point group of installed packages; each value is `module:Class`, a driver with the decorator `model`."""

VARIABLE: Final = "MACHINE_MODELS"
"""Environment variable with more of them, separated by commas: for a driver that is a file and not a package yet."""


def installed() -> list[str]:
    """Import paths of the drivers that installed packages and MACHINE_MODELS offer."""
    from importlib.metadata import entry_points  # takes longer than the rest of a start-up; rarely needed

    named = os.environ.get(VARIABLE, "").split(",")
    return [path.strip() for path in named if path.strip()] + [
        point.value for point in entry_points(group=ENTRY_POINTS)
    ]


class Registry:
    """`(API, Model) -> type[Resource]`; the built-ins of `table`, whatever is added, and what `offers` names.

    `offers` is asked once, when a model is wanted that is neither in the table nor added.
    """

    def __init__(
        self, table: Mapping[tuple[str, str], str] | None = None, *, offers: Callable[[], Iterable[str]] = installed
    ) -> None:
        if table is None:
            from runtime.builtin import BUILTIN

            table = BUILTIN
        self._paths: dict[tuple[str, str], str] = dict(table)
        self._classes: dict[tuple[str, str], type[Resource]] = {}
        self._offers: Callable[[], Iterable[str]] | None = offers
        self._broken: list[str] = []  # offers that could not be imported, and why

    def add(self, api: API, model: Model, cls: type[Resource]) -> None:
        """Register `cls`; raises MachineError (EXISTS) if the pair is taken."""
        key = (str(api), str(model))
        if key in self:
            raise MachineError(f"{model} is already registered for {api}", kind=ErrorKind.EXISTS)
        self._classes[key] = cls

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._classes or key in self._paths

    def find(self, api: API, model: Model) -> type[Resource]:
        """The class for the pair, imported now if it was not.

        Raises UnknownModel, or MachineError (INTERNAL) if importing fails (a missing optional library, a bug).
        """
        key = (str(api), str(model))
        if (cls := self._classes.get(key)) is not None:
            return cls
        if (path := self._paths.get(key)) is not None:
            cls = self._classes[key] = _imported(path)
            return cls
        self._take_offers()
        if (cls := self._classes.get(key)) is not None:
            return cls
        raise self._unknown(api, model)

    def _take_offers(self) -> None:
        """Import what is offered, once; one that is broken is remembered and stops nobody."""
        offers, self._offers = self._offers, None
        for path in offers() if offers is not None else ():
            try:
                cls = _imported(path)
                if cls.MODEL is None:
                    raise MachineError(f"{path} names no model", remedy="decorate it with runtime.resource.model")
                self.add(cls.API, cls.MODEL, cls)
            except MachineError as error:
                self._broken.append(str(error))

    def is_loaded(self, api: API, model: Model) -> bool:
        """Whether `find` would answer without importing."""
        return (str(api), str(model)) in self._classes

    def pairs(self) -> list[tuple[str, str]]:
        """Every registered (API, model), sorted."""
        return sorted(self._paths.keys() | self._classes.keys())

    def config(self, api: API, model: Model) -> type[Attributes]:
        """The class of the attributes; raises as `find`."""
        return self.find(api, model).Config

    def _unknown(self, api: API, model: Model) -> UnknownModel:
        """The error for a pair that is not there; a driver that could not be imported may be the missing one."""
        error = unknown(api, model, self.pairs())
        broken = [f"an installed driver is broken: {reason}" for reason in self._broken]
        return UnknownModel(error.message, remedy="; ".join([error.remedy, *broken])) if broken else error


def _imported(path: str) -> type[Resource]:
    """The class at `module:Class`; MachineError if it cannot be imported or is no driver."""
    module, _, name = path.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        raise MachineError(
            f"{path} could not be loaded: {error}",
            kind=ErrorKind.UNAVAILABLE if missing else ErrorKind.INTERNAL,
            remedy=f"install the package that provides {missing!r}" if missing else "",
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, Resource)):
        raise MachineError(f"{path} is not a Resource class", kind=ErrorKind.INTERNAL)
    return cls
