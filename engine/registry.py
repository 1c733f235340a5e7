"""Finds the class that implements a model of an API. Built-in models are a table of import paths, imported on demand.

Drivers in other packages are found through entry points and an environment variable, and only when a model that is
not built in is requested.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from engine.resource import Attributes, Resource
from rpc.api import APIS
from schema import API, ErrorKind, MachineError, Model, UnknownModel, unknown_model

ENTRY_POINTS: Final = "machine.models"
"""Entry-point group for installed packages; each value is `module:Class`, a driver with the decorator `model`."""

VARIABLE: Final = "MACHINE_MODELS"
"""Environment variable with further `module:Class` values, separated by commas, for drivers not yet in a package."""


def installed_models() -> list[str]:
    """Return the import paths of the drivers in installed packages and in MACHINE_MODELS."""
    from importlib.metadata import entry_points  # slower than the rest of the start-up, and rarely needed

    paths = os.environ.get(VARIABLE, "").split(",")
    return [path.strip() for path in paths if path.strip()] + [
        point.value for point in entry_points(group=ENTRY_POINTS)
    ]


class Registry:
    """Maps (API, Model) to a Resource class: the built-in classes in `table`, added classes, and those in `offers`.

    `offers` is called once, when a model that is neither in the table nor added is requested.
    """

    def __init__(
        self, table: Mapping[tuple[str, str], str], *, offers: Callable[[], Iterable[str]] = installed_models
    ) -> None:
        self._paths: dict[tuple[str, str], str] = dict(table)
        self._classes: dict[tuple[str, str], type[Resource]] = {}
        self._offers: Callable[[], Iterable[str]] | None = offers
        self._broken: list[str] = []  # errors of offers that could not be imported

    def add(self, api: API, model: Model, cls: type[Resource]) -> None:
        """Register `cls`; raises MachineError (EXISTS) if the pair is taken."""
        key = (str(api), str(model))
        if key in self:
            raise MachineError(f"{model} is already registered for {api}", kind=ErrorKind.EXISTS)
        self._classes[key] = cls

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._classes or key in self._paths

    def find(self, api: API, model: Model) -> type[Resource]:
        """Return the class for a model of an API, importing it if necessary.

        Raises UnknownModel, or MachineError if the import fails: UNAVAILABLE if a library is missing, else INTERNAL.
        """
        key = (str(api), str(model))
        if (cls := self._classes.get(key)) is not None:
            return cls
        if (path := self._paths.get(key)) is not None:
            cls = self._classes[key] = _imported(path)
            return cls
        self._import_installed()
        if (cls := self._classes.get(key)) is not None:
            return cls
        raise self._unknown(api, model)

    def _import_installed(self) -> None:
        """Import the offers, once; the error of a broken one is recorded, and the others are still imported."""
        offers, self._offers = self._offers, None
        for path in offers() if offers is not None else ():
            try:
                cls = _imported(path)
                if cls.MODEL is None:
                    raise MachineError(f"{path} has no model", remedy="decorate it with engine.model")
                self.add(cls.API, cls.MODEL, cls)
            except MachineError as error:
                self._broken.append(str(error))

    def is_loaded(self, api: API, model: Model) -> bool:
        """Return whether the class is already imported."""
        return (str(api), str(model)) in self._classes

    def pairs(self) -> list[tuple[str, str]]:
        """Return all registered (API, model) pairs, sorted."""
        return sorted(self._paths.keys() | self._classes.keys())

    def config(self, api: API, model: Model) -> type[Attributes]:
        """Return the class of the attributes; raises the errors of `find`."""
        return self.find(api, model).Config

    def _unknown(self, api: API, model: Model) -> UnknownModel:
        """Return the error for an unknown pair; it lists broken drivers, because the missing one may be among them."""
        error = unknown_model(api, model, self.pairs(), APIS)
        broken = [f"an installed driver is broken: {reason}" for reason in self._broken]
        return UnknownModel(error.message, remedy="; ".join([error.remedy, *broken])) if broken else error


def _imported(path: str) -> type[Resource]:
    """Return the class at `module:Class`; raises MachineError if it cannot be imported or is not a Resource."""
    module, _, name = path.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name)
    except Exception as error:
        if lacking := _lacking(error):
            raise MachineError(
                f"{path} does not work on this operating system: {lacking}",
                kind=ErrorKind.UNSUPPORTED,
                remedy="run this machine on Linux, or remove the resource",
            ) from error
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        raise MachineError(
            f"{path} could not be loaded: {error}",
            kind=ErrorKind.UNAVAILABLE if missing else ErrorKind.INTERNAL,
            remedy=f"install the package that provides {missing!r}" if missing else "",
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, Resource)):
        raise MachineError(f"{path} is not a Resource class", kind=ErrorKind.INTERNAL)
    return cls


def _lacking(error: Exception) -> str:
    """Return what Python's own library does not have on this operating system, if that was the reason of an error."""
    if isinstance(error, ModuleNotFoundError) and error.name in sys.stdlib_module_names:
        return f"Python has no module {error.name} here"
    if isinstance(error, AttributeError) and error.obj in (os, signal):
        return f"Python has no {error.obj.__name__}.{error.name} here"
    return ""
