"""Texts made to keep a regular expression busy, derived from its own parts."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any, Final

LONG: Final = 16  # repetitions from which on a repetition is worth an attack
_SAMPLES: Final = "aA0_ -.:/=@\"'\\\n\t,;<>(){}[]#$%&*+?!^|~é…\x00"
_ENDS: Final = ("", "\x00", "!", "\n", "a", "é")


class Busy(Exception):
    """Search that has used more processor time than allowed."""


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Yield hostile texts of `length` characters: each part of the pattern repeated, behind what leads to it."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else 0)
    heads, pumps = {""}, {" ", "a", "0"}
    for before, repeated in _repetitions(tree, ""):
        heads.add(before)
        pumps |= {repeated, before + repeated}
    pumps |= set(_leaves(tree)) | {_example(tree)}
    pumps |= {first + second for first in _starts(tree) for second in list(pumps)[:20]}
    seen = set()
    for pump in pumps - {""}:
        for head in heads:
            for end in _ENDS:
                text = (head + pump * (length // len(pump) + 1))[:length] + end
                if text not in seen:
                    seen.add(text)
                    yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def seconds(search: Callable[[Any], object], text: Any, most: float) -> float:
    """Return the processor time of one search. Raises Busy above `most` seconds."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Busy

    previous = signal.signal(signal.SIGVTALRM, stop)
    begin = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        search(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    return time.thread_time() - begin


def _repetitions(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield an example of what precedes each long repetition, and one of what is repeated."""
    for op, argument in tree:
        for inner in _inner(op, argument):
            yield from _repetitions(inner, before)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) and argument[1] > LONG:
            for sample in _samples(argument[2]):
                yield before, sample
        before += _example([(op, argument)])


def _inner(op: Any, argument: Any) -> list[Any]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return [argument[2]]
    if op is ops.SUBPATTERN:
        return [argument[3]]
    if op is ops.ATOMIC_GROUP:
        return [argument]
    if op is ops.BRANCH:
        return list(argument[1])
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [argument[1]]
    return []


def _samples(tree: Any) -> list[str]:
    """Return different short texts that the parts match."""
    if len(tree) == 1 and tree[0][0] is ops.IN:
        matching = [sample for sample in _SAMPLES if _accepts(tree[0], sample)]
        return matching[:3] + matching[-2:]
    if len(tree) == 1 and tree[0][0] in (ops.ANY, ops.NOT_LITERAL):
        return ["a", " ", "\\"]
    if len(tree) == 1 and tree[0][0] is ops.BRANCH:
        return [_example(branch) for branch in tree[0][1][1]]
    return [_example(tree)]


def _leaves(tree: Any) -> Iterator[str]:
    for op, argument in tree:
        if op is ops.LITERAL:
            yield chr(argument)
        elif op is ops.IN:
            yield _example([(op, argument)])
        for inner in _inner(op, argument):
            yield from _leaves(inner)


def _starts(tree: Any) -> list[str]:
    """Return examples of the first part that consumes characters."""
    for item in tree:
        example = _example([item])
        if example:
            return [example]
    return []


def _accepts(item: tuple[Any, Any], character: str) -> bool:
    state = parser.State()
    state.str = ""
    compiled: re.Pattern[str] = re.compile(_class(item[1]))
    return compiled.fullmatch(character) is not None


def _class(items: Any) -> str:
    """Write a character class of the parsed form as an expression again."""
    parts, negated = [], ""
    for op, argument in items:
        if op is ops.NEGATE:
            negated = "^"
        elif op is ops.LITERAL:
            parts.append(re.escape(chr(argument)))
        elif op is ops.RANGE:
            parts.append(f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}")
        else:
            parts.append(_CATEGORIES[argument])
    return f"[{negated}{''.join(parts)}]"


_CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}


def _example(tree: Any) -> str:
    """Return a text that the parts match, apart from assertions and references."""
    text = ""
    for op, argument in tree:
        if op is ops.LITERAL:
            text += chr(argument)
        elif op is ops.NOT_LITERAL or op is ops.ANY:
            text += "b" if op is ops.ANY or argument != ord("b") else "c"
        elif op is ops.IN:
            text += next((sample for sample in _SAMPLES if _accepts((op, argument), sample)), "a")
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            text += _example(argument[2]) * max(1, min(argument[0], 64))
        elif op is ops.SUBPATTERN:
            text += _example(argument[3])
        elif op is ops.ATOMIC_GROUP:
            text += _example(argument)
        elif op is ops.BRANCH:
            text += _example(argument[1][0])
    return text
