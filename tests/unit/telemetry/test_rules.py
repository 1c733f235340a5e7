"""Levels by pattern."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.document.machine import decode_document
from telemetry.logs.rules import Rules, compile_pattern, rules_of_document


def rules(text: str, *, debug: bool = False) -> tuple[Rules, list[str]]:
    document = decode_document(text.encode()).document
    assert document is not None
    result, warnings = rules_of_document(document, debug=debug)
    return result, [str(warning) for warning in warnings]


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("rdk.config", "rdk.config", True),
        ("rdk.config", "rdkxconfig", False),  # a dot matches only a dot
        ("rdk.config", "rdk.config.child", False),  # anchored at the end
        ("config", "rdk.config", False),  # and at the start
        ("rdk.*", "rdk.config.child", True),
        ("*", "", True),
        ("rdk.resource_manager.*:motor/*", "rdk.resource_manager.rdk:component:motor/left", True),
        ("rdk.(config|networking)", "rdk.networking", True),  # other characters are regular expressions
        ("rdk.[a-c]onfig", "rdk.config", True),
    ],
)
def test_pattern_language(pattern: str, name: str, matches: bool) -> None:
    assert bool(compile_pattern(pattern).fullmatch(name)) is matches


def test_last_match_wins() -> None:
    result, _ = rules('{"log":[{"pattern":"rdk.*","level":"error"},{"pattern":"rdk.a*","level":"Debug"}]}')
    assert result.level("rdk.abc") == logging.DEBUG
    assert result.level("rdk.xyz") == logging.ERROR
    assert result.level("other") == logging.INFO
    assert result.lowest == logging.DEBUG


@pytest.mark.parametrize(
    ("word", "level"), [("debug", 10), ("Info", 20), ("WARN", 30), ("warning", 30), ("Error", 40), (" error ", 40)]
)
def test_level_words_in_any_case(word: str, level: int) -> None:
    result, warnings = rules(f'{{"log":[{{"pattern":"a","level":"{word}"}}]}}')
    assert (result.level("a"), warnings) == (level, [])


def test_a_resources_own_level_beats_patterns_and_components_beat_services() -> None:
    result, _ = rules(
        """{"log":[{"pattern":"*","level":"error"}],
            "components":[{"name":"left","api":"rdk:component:motor","model":"fake","log_configuration":{"level":"Debug"}}],
            "services":[{"api":"rdk:service:motion","log_configuration":{"level":"warn"}}],
            "jobs":[{"name":"j","schedule":"1s","resource":"left","method":"Stop","log_configuration":{"level":"info"}}]}"""
    )
    assert result.level("rdk.resource_manager.rdk:component:motor/left") == logging.DEBUG
    assert result.level("rdk.resource_manager.rdk:service:motion/builtin") == logging.WARNING
    assert result.level("rdk.job_manager.j") == logging.INFO
    assert result.level("rdk.resource_manager.rdk:component:motor/left2") == logging.ERROR


@pytest.mark.parametrize("how", ["document", "argument"])
def test_debug_overrides_everything(how: str) -> None:
    text = '{"log":[{"pattern":"*","level":"error"}]%s}' % (',"debug":true' if how == "document" else "")
    result, _ = rules(text, debug=how == "argument")
    assert result.level("anything") == result.lowest == logging.DEBUG


def test_bad_patterns_and_levels_are_skipped_with_a_warning() -> None:
    result, warnings = rules(
        '{"log":[{"pattern":"(","level":"error"},{"pattern":"a","level":"loud"},{"pattern":"a","level":"warn"}]}'
    )
    assert result.level("a") == logging.WARNING
    assert warnings[0].startswith("log.0.pattern: '(' is not a valid pattern")
    assert warnings[1].startswith("log.1.level: 'loud' is not a level")


names = st.text(alphabet="ab.:/*", max_size=8)
levels = st.sampled_from([10, 20, 30, 40])


@given(st.lists(st.tuples(names, levels), max_size=6), st.lists(names, max_size=30))
def test_level_is_that_of_the_last_match(pairs: list[tuple[str, int]], asked: list[str]) -> None:
    result = Rules([(compile_pattern(pattern), level) for pattern, level in pairs])
    for name in asked * 2:  # twice: the cached answer is the same
        level = logging.INFO
        for pattern, pattern_level in pairs:
            if compile_pattern(pattern).fullmatch(name):
                level = pattern_level
        assert result.level(name) == level
        assert result.lowest <= level


def test_memory_is_bounded() -> None:
    result = Rules([(compile_pattern("n1*"), logging.ERROR)])
    for number in range(10_000):
        result.level(f"n{number}")
    assert len(result._cache) <= 4096
    assert result.level("n1") == logging.ERROR
