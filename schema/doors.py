"""Public names of a package, which are loaded when they are first used (PEP 562).

Only the standard library is imported: processes that unpack archives, run queries or start trainers have nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def open_door(
    package: str, names: Mapping[str, Sequence[str]], *, modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for the `__init__.py` of a package.

    `names` are the public names by the module that defines them, relative to the package; `modules` are public as a
    whole. A name must differ from all modules and folders of the package: importing one of them would replace it.
    """
    places = {name: module for module, own in names.items() for name in own}
    public = sorted([*places, *modules])

    def load(name: str) -> Any:
        if name in places:
            value = getattr(import_module(f"{package}.{places[name]}"), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"{package} has no public name {name}", name=name, obj=sys.modules.get(package))
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: public, public
