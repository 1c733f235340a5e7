"""Write models/table.py: where each built-in model and its attributes are, and the I2C addresses of chips.

A built-in model is a class with the decorator `engine.model` in a `model.py` of the package `models`, or the data
manager, which is a part of the server. Nothing else lists the models.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine import Resource
from models.chips.common.attributes import I2cAttributes
from tools.check_layout import module_of

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "models" / "table.py"
DATA_MANAGER: Final = "runtime/parts/data/manager.py"

HEAD: Final = '''"""Where each built-in model and its attributes are, and the I2C addresses of chips. Pure.

`make generate` writes this file from the classes with the decorator `engine.model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# fmt: off
'''


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """A built-in model: its API and name, its class and the class of its attributes, and chips with their addresses."""

    api: str
    name: str
    path: str
    attributes: str
    chips: tuple[tuple[int, str, tuple[int, ...]], ...]


def builtin_models() -> Iterator[BuiltinModel]:
    """Yield the built-in models, by API and name."""
    yield from sorted(_models(), key=lambda item: (item.api, item.name))


def _models() -> Iterator[BuiltinModel]:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "models").rglob("model.py")]
    for file in sorted([*files, DATA_MANAGER]):
        module = importlib.import_module(module_of(file))
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, Resource) and cls.__module__ == module.__name__:
                yield from _of_class(cls)


def _of_class(cls: type[Resource]) -> Iterator[BuiltinModel]:
    if "MODEL" not in vars(cls) or cls.MODEL is None:
        return
    config = cls.Config
    chips = ()
    if issubclass(config, I2cAttributes):
        chips = tuple((config.SUGGESTED, chip, tuple(places)) for chip, places in config.CHIPS.items())
    for name in (cls.MODEL, *cls.OTHER_MODELS):
        attributes = f"{config.__module__}:{config.__qualname__}"
        yield BuiltinModel(str(cls.API), str(name), f"{cls.__module__}:{cls.__qualname__}", attributes, chips)


def page() -> str:
    """Return the text of the file."""
    models = list(builtin_models())
    chips = sorted(
        {(-rank, len(places), chip, places) for item in models for rank, chip, places in item.chips},
    )
    return "".join(
        (
            HEAD,
            _table("BUILTIN", "tuple[str, str], str", ((_key(item), f'"{item.path}"') for item in models)),
            '"""`(API, model)` -> `module:class` of the resource."""\n\n',
            _table("ATTRIBUTES", "tuple[str, str], str", ((_key(item), f'"{item.attributes}"') for item in models)),
            '"""`(API, model)` -> `module:class` of the attributes; these modules import no hardware."""\n\n',
            _table(
                "CHIPS", "str, tuple[int, ...]", ((f'"{chip}"', _addresses(places)) for _, _, chip, places in chips)
            ),
            '"""Chips with a driver, those that are suggested first at the front, and their I2C addresses."""\n',
        )
    )


def _key(item: BuiltinModel) -> str:
    return f'("{item.api}", "{item.name}")'


def _addresses(places: tuple[int, ...]) -> str:
    if len(places) > 2 and places == tuple(range(places[0], places[-1] + 1)):
        return f"tuple(range(0x{places[0]:02X}, 0x{places[-1] + 1:02X}))"
    if len(places) > 8:
        gap = next(place for place in range(places[0], places[-1]) if place not in places)
        return f"(*range(0x{places[0]:02X}, 0x{gap:02X}), *range(0x{gap + 1:02X}, 0x{places[-1] + 1:02X}))"
    return f"({', '.join(f'0x{place:02X}' for place in places)}{',' * (len(places) == 1)})"


def _table(name: str, kind: str, rows: Iterator[tuple[str, str]]) -> str:
    return f"{name}: Final[Mapping[{kind}]] = {{\n" + "".join(f"    {key}: {value},\n" for key, value in rows) + "}\n"
