"""The regular expression search that cannot hang: the same results as Python's re, in bounded time."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.decoding.regex import MAX_TEXT, Effort, Pattern, PatternError, StepLimit

ATOMS = (
    "a",
    "b",
    "c",
    ".",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    r"\s",
    "^",
    "$",
    r"\A",
    r"\Z",
    r"\b",
    r"\B",
    r"\.",
    "[]a]",
    "{",
    " ",
)
QUANTIFIERS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}", "{2,}", "{,2}", "{1,2}?")
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map("({0[0]}){0[1]}".format),
        st.tuples(st.sampled_from(("a", "[ab]", r"\w")), st.sampled_from(QUANTIFIERS)).map("".join),
    ),
    max_leaves=6,
)


@given(patterns, st.lists(st.text("abcAB1. {\n", max_size=8), max_size=4), st.booleans())
def test_finds_what_python_finds(pattern: str, texts: list[str], ignore: bool) -> None:
    pattern = ("(?i)" if ignore else "") + pattern
    try:
        reference = re.compile(pattern)
    except re.error:
        with pytest.raises(PatternError):
            Pattern(pattern)
        return
    ours = Pattern(pattern)
    for text in texts:
        assert ours.search(text) is (reference.search(text) is not None), (pattern, text)


@given(st.text(r"ab()[]{}|*+?\.^$,1", max_size=12))
def test_a_pattern_is_compiled_or_refused_and_nothing_else(pattern: str) -> None:
    try:
        ours = Pattern(pattern)
    except PatternError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert ours.search("ab1") is (re.search(pattern, "ab1") is not None)


@pytest.mark.parametrize(
    "pattern",
    ["(a*)*b", "(a|a)*b", "(a|aa)+$", "(a+)+$", "a*a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)x", "(?:(?:a?)*)*b", "(x+x+)+y"],
)
def test_patterns_that_hang_a_backtracking_engine_end_here(pattern: str) -> None:
    assert Pattern(pattern).search("a" * 500 + "!") is False


def test_a_long_search_is_stopped() -> None:
    with pytest.raises(StepLimit):
        Pattern("(a|aa|.)*" * 30 + "z").search("a" * 8000)


def test_searches_share_an_effort() -> None:
    pattern, effort = Pattern("a*b"), Effort(10_000)
    assert pattern.search("aaab", effort) is True
    assert 10_000 - 40 < effort.left < 10_000
    with pytest.raises(StepLimit):
        pattern.search("a" * 8000, effort)
    assert effort.left == -1
    with pytest.raises(StepLimit):
        pattern.search("b", effort)
    assert pattern.search("b") is True


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "unterminated"),
        ("a)", "unbalanced"),
        ("[a", "unterminated"),
        ("*a", "nothing to repeat"),
        (r"(a)\1", "not supported"),
        ("(?=a)", "look-around"),
        ("(?<!a)b", "look-around"),
        ("(?i:a)", "flags"),
        ("a++", "possessive"),
        ("a{2000}", "too large"),
        ("(a{40}){40}", "too large"),
        ("((((){999}){999}){999}){999}", "too large"),
        ("(){5000}" * 3, "too large"),
        ("x" * 513, "513 characters"),
        ("(" * 60 + ")" * 60, "too deeply"),
    ],
)
def test_refused_expressions(pattern: str, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        Pattern(pattern)


def test_only_the_begin_of_a_long_text_is_searched() -> None:
    assert Pattern("b").search("a" * (MAX_TEXT - 1) + "b")
    assert not Pattern("b").search("a" * MAX_TEXT + "b")


def test_named_groups_classes_and_letters_of_other_languages() -> None:
    assert Pattern(r"(?P<word>\w+)é").search("café")
    assert Pattern(r"[\]x-z]").search("]")
    assert Pattern(r"(?i)TÜR").search("tür")
    assert not Pattern(r"\u00e9").search("e")


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"a\b", "a b", True),
        (r"a\b", "ab", False),
        (r"a\B", "ab", True),
        (r"a\B", "a b", False),
        (r"\ba", " a", True),
        (r"\Ba", "a", False),
    ],
)
def test_edges_of_words(pattern: str, text: str, matches: bool) -> None:
    assert Pattern(pattern).search(text) is matches
