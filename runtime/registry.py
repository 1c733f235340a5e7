"""Which class implements an API and a model. Built-ins are a table of import paths, imported when first needed.

Drivers of others are found where they are installed or named, and only when a model is wanted that is not built in.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from runtime.resource import Resource
from schema.errors import ErrorKind, MachineError
from schema.names import API, Model

ENTRY_POINTS: Final = "machine.models"
"""Entry-point group of installed packages; each value is `module:Class`, a driver with the decorator `model`."""

VARIABLE: Final = "MACHINE_MODELS"
"""Environment variable with more of them, separated by commas: for a driver that is a file and not a package yet."""


class UnknownModel(MachineError):
    """No class is registered for that API and model; the remedy names the nearest that are."""

    kind = ErrorKind.NOT_FOUND


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

    def _unknown(self, api: API, model: Model) -> UnknownModel:
        """The error for a pair that is not there: near models of that API first, then the same model elsewhere."""
        known = self.pairs()
        here = [other for one, other in known if one == str(api)]
        if not here:
            near = difflib.get_close_matches(str(api), sorted({one for one, _ in known}), 3, 0.6)
            hint = f"; did you mean {_either(near)}?" if near else ""
            return UnknownModel(
                f"no model of {api} is known", remedy=self._with_broken(f"nothing provides that API{hint}")
            )
        near = difflib.get_close_matches(str(model), here, 3, 0.6) or [
            one for one in here if one.endswith(f":{model.name}")
        ]
        hint = f"did you mean {_either(near)}?" if near else f"known models: {', '.join(here)}"
        return UnknownModel(f"no model {model} of {api} is known", remedy=self._with_broken(hint))

    def _with_broken(self, hint: str) -> str:
        """A driver that could not be imported may be the one that is missed."""
        return "; ".join([hint, *(f"an installed driver is broken: {reason}" for reason in self._broken)])


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


def _either(words: Iterable[str]) -> str:
    return " or ".join(words)
