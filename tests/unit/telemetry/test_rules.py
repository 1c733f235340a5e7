"""Levels by pattern."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.document.machine import decode
from telemetry.logs.rules import Rules, compile_pattern, from_document


def rules(text: str, *, debug: bool = False) -> tuple[Rules, list[str]]:
    document = decode(text.encode()).document
    assert document is not None
    found, warnings = from_document(document, debug=debug)
    return found, [str(warning) for warning in warnings]


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
    found, _ = rules('{"log":[{"pattern":"rdk.*","level":"error"},{"pattern":"rdk.a*","level":"Debug"}]}')
    assert found.level("rdk.abc") == logging.DEBUG
    assert found.level("rdk.xyz") == logging.ERROR
    assert found.level("other") == logging.INFO
    assert found.lowest == logging.DEBUG


@pytest.mark.parametrize(
    ("word", "level"), [("debug", 10), ("Info", 20), ("WARN", 30), ("warning", 30), ("Error", 40), (" error ", 40)]
)
def test_level_words_in_any_case(word: str, level: int) -> None:
    found, warnings = rules(f'{{"log":[{{"pattern":"a","level":"{word}"}}]}}')
    assert (found.level("a"), warnings) == (level, [])


def test_a_resources_own_level_beats_patterns_and_components_beat_services() -> None:
    found, _ = rules(
        """{"log":[{"pattern":"*","level":"error"}],
            "components":[{"name":"left","api":"rdk:component:motor","model":"fake","log_configuration":{"level":"Debug"}}],
            "services":[{"api":"rdk:service:motion","log_configuration":{"level":"warn"}}],
            "jobs":[{"name":"j","schedule":"1s","resource":"left","method":"Stop","log_configuration":{"level":"info"}}]}"""
    )
    assert found.level("rdk.resource_manager.rdk:component:motor/left") == logging.DEBUG
    assert found.level("rdk.resource_manager.rdk:service:motion/builtin") == logging.WARNING
    assert found.level("rdk.job_manager.j") == logging.INFO
    assert found.level("rdk.resource_manager.rdk:component:motor/left2") == logging.ERROR


@pytest.mark.parametrize("how", ["document", "argument"])
def test_debug_overrides_everything(how: str) -> None:
    text = '{"log":[{"pattern":"*","level":"error"}]%s}' % (',"debug":true' if how == "document" else "")
    found, _ = rules(text, debug=how == "argument")
    assert found.level("anything") == found.lowest == logging.DEBUG


def test_bad_patterns_and_levels_are_skipped_with_a_warning() -> None:
    found, warnings = rules(
        '{"log":[{"pattern":"(","level":"error"},{"pattern":"a","level":"loud"},{"pattern":"a","level":"warn"}]}'
    )
    assert found.level("a") == logging.WARNING
    assert warnings[0].startswith("log.0.pattern: '(' is not a valid pattern")
    assert warnings[1].startswith("log.1.level: 'loud' is not a level")


names = st.text(alphabet="ab.:/*", max_size=8)
levels = st.sampled_from([10, 20, 30, 40])


@given(st.lists(st.tuples(names, levels), max_size=6), st.lists(names, max_size=30))
def test_level_is_that_of_the_last_match(pairs: list[tuple[str, int]], asked: list[str]) -> None:
    found = Rules([(compile_pattern(pattern), level) for pattern, level in pairs])
    for name in asked * 2:  # twice: the cached answer is the same
        level = logging.INFO
        for pattern, its_level in pairs:
            if compile_pattern(pattern).fullmatch(name):
                level = its_level
        assert found.level(name) == level
        assert found.lowest <= level


def test_memory_is_bounded() -> None:
    found = Rules([(compile_pattern("n1*"), logging.ERROR)])
    for number in range(10_000):
        found.level(f"n{number}")
    assert len(found._cache) <= 4096
    assert found.level("n1") == logging.ERROR
