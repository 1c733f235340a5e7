"""Regular expressions with a search time proportional to pattern size times text size, and a step limit. Pure.

The re module backtracks, so a short pattern can keep it busy for years, and a search cannot be interrupted. This module
compiles a pattern to an automaton and follows all of its states at once (K. Thompson, "Regular expression search
algorithm", CACM 11(6), 1968). Syntax and meaning are those of Python's re for the supported subset: characters,
classes, `.`, groups, `|`, `* + ? {m,n}` also lazy, `^ $ \\A \\Z \\b \\B`, and a leading `(?i)`. Back references and
look-around cannot be expressed by such an automaton and are refused.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Final

MAX_PATTERN: Final = 512  # characters
MAX_STATES: Final = 1000  # after expanding counted repetitions
MAX_WORK: Final = 10_000  # items visited during expansion; an empty group has no state but takes time
MAX_TEXT: Final = 8192  # characters searched; the rest is ignored
MAX_STEPS: Final = 200_000  # states entered in one search: a few tenths of a second

_QUANTIFIER = re.compile(r"(?:[*+?]|\{(?P<low>\d*+)(?P<comma>,)?+(?P<high>\d*+)\})(?P<mode>[?+]?)")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|[^\w\s]|[ \tdDsSwWnrtfv])", re.DOTALL
)
_GROUP = re.compile(r"\((?:\?:|\?P<[A-Za-z_]\w*>)?")
_ASSERTIONS: Final = {"^": "begin", "$": "end", r"\A": "begin", r"\Z": "finish", r"\b": "edge", r"\B": "inside"}


class PatternError(ValueError):
    """Invalid or unsupported pattern; the message says why and where. `reason` is the message without the pattern."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class StepLimit(Exception):
    """Search that exceeded its step limit."""


@dataclass(slots=True)
class Effort:
    """Remaining budget of steps: one for each comparison, plus the steps of searches."""

    left: int


@dataclass(slots=True)
class _State:
    """State that consumes a character matching `accepts` or, without `accepts`, none if `assertion` holds."""

    accepts: re.Pattern[str] | None = None
    assertion: str = ""
    next: list[int] = field(default_factory=list)


class Pattern:
    """Compiled expression. The constructor raises PatternError for an invalid or unsupported pattern."""

    def __init__(self, text: str) -> None:
        with warnings.catch_warnings():  # about changes of syntax in later versions of Python
            warnings.simplefilter("ignore", FutureWarning)
            self._compile(text)

    def _compile(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise PatternError(f"the expression has {len(text)} characters; {MAX_PATTERN} is the limit")
        try:
            re.compile(text)  # reports syntax errors with Python's own messages
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"{text!r} is not a regular expression: {error}", str(error)) from None
        self._flags = re.IGNORECASE if text.startswith("(?i)") else 0
        self._text = text[4:] if self._flags else text
        self._states: list[_State] = []
        self._position = 0
        self._work = 0
        end = self._add(_State())
        self._start = self._alternatives(end, 0)
        if self._position < len(self._text):
            raise self._error("unbalanced parenthesis")
        self._end = end

    def search(self, text: str, effort: Effort | None = None) -> bool:
        """Return True if the expression matches anywhere in the first MAX_TEXT characters.

        Raises StepLimit after MAX_STEPS steps or the steps left in `effort`, from which the used steps are deducted.
        """
        return self._limited(text, effort, whole=False)

    def fullmatch(self, text: str, effort: Effort | None = None) -> bool:
        """Return True if the expression matches all of `text`, which has at most MAX_TEXT characters.

        Raises StepLimit like `search`.
        """
        return len(text) <= MAX_TEXT and self._limited(text, effort, whole=True)

    def _limited(self, text: str, effort: Effort | None, *, whole: bool) -> bool:
        self._steps, self._limit = 0, MAX_STEPS if effort is None else min(MAX_STEPS, effort.left)
        try:
            return self._search(text[:MAX_TEXT], whole)
        finally:
            if effort is not None:
                effort.left -= self._steps

    def _search(self, text: str, whole: bool) -> bool:
        current: set[int] = set()
        for position in range(len(text) + 1):
            if position == 0 or not whole:
                self._follow(self._start, text, position, current)
            elif not current:
                return False
            if position == len(text):
                break
            if self._end in current and not whole:
                return True
            character = text[position]
            following: set[int] = set()
            for number in current:
                state = self._states[number]
                if state.accepts is not None and state.accepts.match(character):
                    self._follow(state.next[0], text, position + 1, following)
            current = following
        return self._end in current

    def _follow(self, number: int, text: str, position: int, reached: set[int]) -> None:
        """Add a state and all states reachable from it without consuming a character."""
        waiting = [number]
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            self._steps += 1
            if self._steps > self._limit:
                raise StepLimit
            state = self._states[number]
            if state.assertion and not _holds(state.assertion, text, position):
                continue
            reached.add(number)
            if state.accepts is None:
                waiting.extend(state.next)

    # ---- the parser builds the automaton backwards: each part gets the state that follows it

    def _add(self, state: _State) -> int:
        if len(self._states) >= MAX_STATES:
            raise PatternError(f"{self._text!r} is too large after expanding its repetitions")
        self._states.append(state)
        return len(self._states) - 1

    def _error(self, reason: str) -> PatternError:
        return PatternError(f"{self._text!r}: {reason} at position {self._position}")

    def _alternatives(self, following: int, depth: int) -> int:
        if depth > 50:
            raise self._error("groups are nested too deeply")
        branches = [self._sequence(following, depth)]
        while self._text.startswith("|", self._position):
            self._position += 1
            branches.append(self._sequence(following, depth))
        return branches[0] if len(branches) == 1 else self._add(_State(next=branches))

    def _sequence(self, following: int, depth: int) -> int:
        spans = []
        while self._position < len(self._text) and self._text[self._position] not in "|)":
            begin = self._position
            self._skip_item()
            quantifier = self._quantifier()
            spans.append((begin, quantifier))
        resume = self._position
        for begin, (low, high) in reversed(spans):
            following = self._repeat(begin, low, high, following, depth)
        self._position = resume
        return following

    def _repeat(self, begin: int, low: int, high: int | None, following: int, depth: int) -> int:
        if high is None:
            loop = self._add(_State(next=[following]))
            self._states[loop].next.append(self._item(begin, loop, depth))
            following = loop
        else:
            end = following
            for _ in range(high - low):
                following = self._add(_State(next=[end, self._item(begin, following, depth)]))
        for _ in range(low):
            following = self._item(begin, following, depth)
        return following

    def _item(self, begin: int, following: int, depth: int) -> int:
        self._work += 1
        if self._work > MAX_WORK:
            raise PatternError(f"{self._text!r} is too large after expanding its repetitions")
        self._position = begin
        text = self._text
        if text[begin] == "(":
            match = _GROUP.match(text, begin)
            assert match is not None
            self._position = match.end()
            start = self._alternatives(following, depth + 1)
            if not text.startswith(")", self._position):
                raise self._error("a group is not closed")
            self._position += 1
            return start
        self._skip_item()
        token = text[begin : self._position]
        if token in _ASSERTIONS:
            return self._add(_State(assertion=_ASSERTIONS[token], next=[following]))
        return self._add(_State(accepts=re.compile(token, self._flags), next=[following]))

    def _skip_item(self) -> None:
        text, start = self._text, self._position
        if text[start] == "(":
            match = _GROUP.match(text, start)
            assert match is not None
            if text.startswith("?", match.end()):
                raise self._error(
                    f"{text[start : start + 4]!r} is not supported: no look-around, no references, no flags inside"
                )
            self._position = match.end()
            while self._position < len(text) and text[self._position] != ")":
                if text[self._position] == "|":
                    self._position += 1
                    continue
                self._skip_item()
                self._quantifier()
            self._position += 1
            return
        if text[start] == "[":
            match = _CLASS.match(text, start)
        elif text[start : start + 2] in _ASSERTIONS:
            self._position += 2
            return
        elif text[start] == "\\":
            match = _ESCAPE.match(text, start)
        else:
            self._position += 1
            return
        if match is None:
            raise self._error(f"{text[start : start + 2]!r} is not supported")
        self._position = match.end()

    def _quantifier(self) -> tuple[int, int | None]:
        match = _QUANTIFIER.match(self._text, self._position)
        if match is None or (match[0].startswith("{") and not match["low"] and not match["high"]):
            return 1, 1
        self._position = match.end()
        if match["mode"] == "+":
            raise self._error("possessive quantifiers are not supported")
        if match[0][0] in _SIMPLE:
            return _SIMPLE[match[0][0]]
        low = int(match["low"] or 0)
        if not match["comma"]:
            return low, low
        return low, int(match["high"]) if match["high"] else None


_SIMPLE: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_WORD = re.compile(r"\w")


def _holds(assertion: str, text: str, position: int) -> bool:
    if assertion == "begin":
        return position == 0
    if assertion == "end":
        return position == len(text) or (position == len(text) - 1 and text[position] == "\n")
    if assertion == "finish":
        return position == len(text)
    before = position > 0 and _WORD.match(text[position - 1]) is not None
    after = position < len(text) and _WORD.match(text[position]) is not None
    if not text:
        return False  # as in Python's re before 3.14, for both \b and \B
    return (before != after) is (assertion == "edge")
