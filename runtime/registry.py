"""Which class implements an API and a model. Built-ins are a table of import paths, imported when first needed."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping

from runtime.resource import Resource
from schema.errors import ErrorKind, MachineError
from schema.names import API, Model


class UnknownModel(MachineError):
    """No class is registered for that API and model; the remedy names the nearest that are."""

    kind = ErrorKind.NOT_FOUND


class Registry:
    """`(API, Model) -> type[Resource]`; the built-ins of `table` and whatever is added."""

    def __init__(self, table: Mapping[tuple[str, str], str] | None = None) -> None:
        if table is None:
            from runtime.builtin import BUILTIN

            table = BUILTIN
        self._paths: dict[tuple[str, str], str] = dict(table)
        self._classes: dict[tuple[str, str], type[Resource]] = {}

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
        if (path := self._paths.get(key)) is None:
            raise self._unknown(api, model)
        module, _, name = path.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except Exception as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            raise MachineError(
                f"{model} could not be loaded from {path}: {error}",
                kind=ErrorKind.UNAVAILABLE if missing else ErrorKind.INTERNAL,
                remedy=f"install the package that provides {missing!r}" if missing else "",
            ) from error
        if not (isinstance(cls, type) and issubclass(cls, Resource)):
            raise MachineError(f"{path} is not a Resource class", kind=ErrorKind.INTERNAL)
        self._classes[key] = cls
        return cls

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
            return UnknownModel(f"no model of {api} is built in", remedy=f"no built-in model provides that API{hint}")
        near = difflib.get_close_matches(str(model), here, 3, 0.6) or [
            one for one in here if one.endswith(f":{model.name}")
        ]
        hint = f"did you mean {_either(near)}?" if near else f"known models: {', '.join(here)}"
        return UnknownModel(f"no model {model} of {api} is known", remedy=hint)


def _either(words: Iterable[str]) -> str:
    return " or ".join(words)
