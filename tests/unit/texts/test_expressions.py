"""Every regular expression of the product takes time in proportion to its text, or its text is short."""

from __future__ import annotations

import re

import pytest

from tests.unit.texts.attack import Busy, seconds, texts
from tests.unit.texts.listing import Expression, expressions

LENGTH = 10_000
MOST = 0.01  # seconds of processor time for LENGTH characters; an expression that is quadratic needs 0.1 to 0.4

_FILE = "in a configuration file of this computer: who writes it also chooses what the machine runs"
SHORT: dict[str, tuple[int, str]] = {
    "schema.substitution:_IN_STRING": (2000, _FILE),
    "schema.substitution:_OUTSIDE": (2000, _FILE),
    "schema.substitution:_IN_KEY": (2000, _FILE),
}
"""Expressions whose texts are short: the greatest length of a text, and what limits it."""

BUILT: dict[str, str] = {
    "schema.decoding.conversion:info.pattern": "of a built-in model; the only one is ^(jpeg|png)$",
    "schema.decoding.regex:text": "compiled for the message of a syntax error, and never searched with",
    "schema.decoding.regex:token": "one character of an automaton",
    "netmgr.owners.dhcpcd:expression": "of a file of the system, for names of interfaces (at most 15 characters)",
    "netmgr.wifi.attempt:rule.pattern": "of the table RULES in the same module",
    "cloud.blobs.s3_answers:b'<%b>([^<]{0,300})' % name.encode()": "of two names in the same module, and bounded",
}
"""Expressions that are not constant: why they are harmless."""

ALL = list(expressions())


def test_the_list_is_complete() -> None:
    assert len(ALL) > 150
    assert {item.place for item in ALL if item.pattern is None} == BUILT.keys()
    assert SHORT.keys() <= {item.place for item in ALL if item.pattern is not None}


@pytest.mark.parametrize("item", [item for item in ALL if item.pattern is not None], ids=lambda item: item.place)
def test_no_text_keeps_an_expression_busy(item: Expression) -> None:
    assert item.pattern is not None
    length = SHORT[item.place][0] if item.place in SHORT else LENGTH
    search = item.pattern.sub if item.anywhere else item.pattern.fullmatch
    for text in texts(item.pattern, length):
        try:
            taken = seconds((lambda t: search(t[:0], t)) if item.anywhere else search, text, MOST * 5)
            if taken > MOST:  # something else may have interrupted
                taken = seconds((lambda t: search(t[:0], t)) if item.anywhere else search, text, MOST * 5)
        except Busy:
            taken = MOST * 5
        assert taken <= MOST, f"{item.pattern.pattern!r} takes {taken:.3f} s for {text[:30]!r}...{text[-5:]!r}"


def test_an_expression_that_is_not_linear_is_noticed() -> None:
    hostile = re.compile(r"[A-Za-z][\w.-]*=")
    with pytest.raises(AssertionError, match="takes"):
        test_no_text_keeps_an_expression_busy(Expression("example", hostile, anywhere=True))
