"""Type hints as the converters read them: optional or not, a sequence, a mapping or a class."""

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
KEPT: Final = 2048  # classes and methods that were read: records are part of many answers
_STREAMS: Final = (abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator)


@dataclass(frozen=True, slots=True)
class Hint:
    """What a type hint asks for. Neither a sequence nor a mapping nor a class means: whatever is natural."""

    cls: type | None = None  # a dataclass, an enum or a plain type
    item: Hint | None = None  # of a sequence
    value: Hint | None = None  # of a mapping
    stream: Hint | None = None  # of an async iterator
    optional: bool = False

    @property
    def is_open(self) -> bool:
        """True if the hint asks for nothing in particular."""
        return self.cls is None and self.item is None and self.value is None and self.stream is None


ANY: Final = Hint()


def parse(hint: Any) -> Hint:
    """Read a type hint. TypeError for what no message can be turned into."""
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
        # What a free-form mapping holds is not looked into: its hint may be recursive.
        return Hint(value=ANY if len(arguments) < 2 or not isinstance(arguments[1], type) else parse(arguments[1]))
    if base in _STREAMS:
        return Hint(stream=first)
    if isinstance(base, type):
        return Hint(cls=base)
    raise TypeError(f"no message can be turned into {hint!r}")


def _parse_union(members: tuple[Any, ...]) -> Hint:
    rest = [member for member in members if member is not type(None)]
    if len(rest) != 1:
        if len(rest) == len(members):
            raise TypeError(f"no message can be turned into one of {', '.join(map(str, members))}")
        return Hint(optional=True)
    inner = parse(rest[0])
    return Hint(inner.cls, inner.item, inner.value, inner.stream, optional=True)


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter of a method or a field of a class."""

    hint: Hint
    required: bool  # it has no default
    keyword_only: bool = False


def fields_of(cls: type) -> Mapping[str, Slot] | None:
    """The fields of a dataclass or msgspec Struct by name, not to be changed; None for any other class."""
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
    """The parameters of a method without `self`, and what it returns or, if it is an async generator, yields."""

    parameters: Mapping[str, Slot]
    result: Hint
    any_keyword: bool  # it takes **kwargs


@lru_cache(KEPT)
def signature_of(method: Callable[..., Any]) -> Signature:
    """Read a method of a class. TypeError for hints that no message can be turned into."""
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
