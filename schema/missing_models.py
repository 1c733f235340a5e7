"""The error for an unknown model: misspelled, or not implemented."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from schema.errors import ErrorKind, MachineError
from schema.names import API, Model

NOT_BUILT: Final = {
    ("rdk:component:board", "esp32"): "boards of microcontrollers",
    ("rdk:component:camera", "ffmpeg"): "reading video streams with ffmpeg",
    ("rdk:component:camera", "replay_pcd"): "replaying point clouds from the cloud",
    ("rdk:component:movement_sensor", "replay"): "replaying movement data from the cloud",
}
"""Models of the reference that are not available, each with its purpose; published APIs without models need none."""

BUILT_IN: Final = "rdk"
"""Namespace of the published APIs."""
BUILTIN: Final = "rdk:builtin:"
"""Prefix that may be omitted from the name of a built-in model."""


class UnknownModel(MachineError):
    """No class is registered for an API and model. The remedy names the most similar ones."""

    kind = ErrorKind.NOT_FOUND


def unknown_model(
    api: API, model: Model, pairs: Collection[tuple[str, str]], published: Collection[API]
) -> UnknownModel:
    """Return the error for an API and model that are not in `pairs`; `published` are the APIs of the specification.

    A model of the reference that is not implemented is reported as such, and so is every published API that has no
    model. Otherwise the error suggests models of that API with similar names, or with the same last word.
    """
    available = sorted(other for name, other in pairs if name == str(api))
    if str(model).startswith(BUILTIN):
        if (missing := NOT_BUILT.get((str(api), model.name))) is not None:
            remedy = f"{_ADD}, or use {_either(available)}" if available else _ADD
            return UnknownModel(f"not built: {missing} (model {model.name} of {api})", remedy=remedy)
        if api in published and not available:
            return UnknownModel(f"not built: models of {api}", remedy=_ADD)
    if not available:
        similar = difflib.get_close_matches(str(api), sorted({name for name, _ in pairs}), 3, 0.6)
        hint = f"; did you mean {_either(similar)}?" if similar else ""
        if api.namespace != BUILT_IN:  # an API of a module, which declares its models only when it runs
            hint = "; a module can provide it when it runs"
        return UnknownModel(f"no model of {api} is known", remedy=f"nothing provides that API{hint}")
    words = [name.removeprefix(BUILTIN) for name in available]  # the shared prefix would make every model look similar
    similar = difflib.get_close_matches(str(model).removeprefix(BUILTIN), words, 3, 0.7) or [
        word for word in words if word == model.name or word.endswith(f":{model.name}")
    ]
    hint = f"did you mean {_either(map(repr, similar))}?" if similar else f"known models: {', '.join(words)}"
    return UnknownModel(f"no model {model} of {api} is known", remedy=hint)


_ADD: Final = "add a module that offers it"


def _either(words: Iterable[str]) -> str:
    return " or ".join(words)
