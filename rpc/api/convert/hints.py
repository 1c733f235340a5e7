"""Type hints in the form used by the converters: optional or not, a sequence, a mapping or a class."""

from __future__ import annotations

import collections.abc as abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Union

_SEQUENCES: Final = (list, tuple, abc.Sequence, abc.Iterable, abc.Collection)
_MAPPINGS: Final = (dict, abc.Mapping, abc.MutableMapping)
KEPT: Final = 2048  # cached classes and methods; the same records are part of many replies
_STREAMS: Final = (abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator)


@dataclass(frozen=True, slots=True)
class Hint:
    """Parsed type hint. Without class, item, value and stream, the natural Python type is used."""

    cls: type | None = None  # a dataclass, an enum, a plain type, or with `item` a class that reads a repeated field
    item: Hint | None = None  # item type of a sequence
    value: Hint | None = None  # value type of a mapping
    stream: Hint | None = None  # item type of an async iterator
    optional: bool = False

    @property
    def is_open(self) -> bool:
        """True if the hint does not restrict the type."""
        return self.cls is None and self.item is None and self.value is None and self.stream is None


ANY: Final = Hint()


def parse(hint: Any) -> Hint:
    """Parse a type hint. TypeError if no message can be converted to it."""
    if hint is None or hint is type(None):
        return Hint(optional=True)
    if hint in (Any, object, inspect.Parameter.empty) or isinstance(hint, typing.TypeVar):
        return ANY
    if isinstance(hint, typing.NewType):
        return parse(hint.__supertype__)
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return parse(typing.get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return _parse_union(typing.get_args(hint))
    base = origin or hint
    arguments = typing.get_args(hint)
    first = parse(arguments[0]) if arguments else ANY
    if base in _SEQUENCES:
        return Hint(item=first)
    if base in _MAPPINGS:
        # The value hint of a free-form mapping is not parsed, because it may be recursive.
        return Hint(value=ANY if len(arguments) < 2 or not isinstance(arguments[1], type) else parse(arguments[1]))
    if base in _STREAMS:
        return Hint(stream=first)
    if isinstance(base, type):
        return Hint(cls=base, item=parse(item) if (item := getattr(base, "ITEM", None)) is not None else None)
    raise TypeError(f"no message can be converted to {hint!r}")


def _parse_union(members: tuple[Any, ...]) -> Hint:
    rest = [member for member in members if member is not type(None)]
    if len(rest) != 1:
        if len(rest) == len(members):
            raise TypeError(f"no message can be converted to one of {', '.join(map(str, members))}")
        return Hint(optional=True)
    inner = parse(rest[0])
    return Hint(inner.cls, inner.item, inner.value, inner.stream, optional=True)


@dataclass(frozen=True, slots=True)
class Slot:
    """Parameter of a method or field of a class."""

    hint: Hint
    required: bool  # has no default
    keyword_only: bool = False


def fields_of(cls: type) -> Mapping[str, Slot] | None:
    """Return the fields of a dataclass or msgspec Struct by name, None for other classes. Do not modify the result."""
    return _fields_of(cls)


@lru_cache(KEPT)
def _fields_of(cls: type) -> Mapping[str, Slot] | None:
    if is_dataclass(cls):
        names = {f.name: f.default is f.default_factory for f in fields(cls) if f.init}  # both are MISSING
    elif (struct := getattr(cls, "__struct_fields__", None)) is not None:
        optional = len(getattr(cls, "__struct_defaults__", ()))
        names = {name: index < len(struct) - optional for index, name in enumerate(struct)}
    else:
        return None
    hints = typing.get_type_hints(cls)
    return {name: Slot(parse(hints[name]), required) for name, required in names.items()}


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of a method without `self`, and the type that it returns or, as an async generator, yields."""

    parameters: Mapping[str, Slot]
    result: Hint
    any_keyword: bool  # accepts **kwargs


@lru_cache(KEPT)
def signature_of(method: Callable[..., Any]) -> Signature:
    """Return the signature of a method of a class. TypeError for a hint to which no message can be converted."""
    try:
        hints = typing.get_type_hints(method)
    except NameError as error:
        raise TypeError(f"{method.__qualname__}: {error}; import it outside of TYPE_CHECKING") from error
    kinds = inspect.Parameter
    parameters: dict[str, Slot] = {}
    any_keyword = False
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.kind is kinds.VAR_KEYWORD:
            any_keyword = True
        elif parameter.kind is not kinds.VAR_POSITIONAL:
            parameters[name] = Slot(
                parse(hints.get(name, Any)), parameter.default is kinds.empty, parameter.kind is kinds.KEYWORD_ONLY
            )
    result = parse(hints.get("return", Any))
    return Signature(parameters, result.stream or result, any_keyword)
