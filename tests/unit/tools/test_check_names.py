"""The check of names finds empty words and dialect in whatever a module binds."""

import ast

import pytest

from tools.check_names import bound_names, is_bad, is_poetic

BINDINGS = [
    "class Entrance: pass",
    "def aside(): pass",
    "async def run(*, known=()): pass",
    "found = 1",
    "for one, two in pairs: pass",
    "text = [one for one in lines]",
    "self.found = 1",
    "class Row:\n    found: int",
    "try:\n    run()\nexcept OSError as told:\n    pass",
    "match value:\n    case [*wanted]:\n        pass",
    "import json as given",
    "if (known := read()): pass",
    "class SetAside: pass",
    "ASIDE = 1",
]


@pytest.mark.parametrize("source", BINDINGS)
def test_a_bad_name_is_reported_however_it_is_bound(source: str) -> None:
    assert any(is_bad(name) for _, name in bound_names(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["found_files = 1", "one_line = read(found)", "class Known_Answer: pass", "x = row.known", "set_one(1)"]
)
def test_names_with_a_noun_and_uses_of_names_are_not_reported(source: str) -> None:
    assert not any(is_bad(name) for _, name in bound_names(ast.parse(source)))


@pytest.mark.parametrize(
    "name", ["test_what_was_put_is_read", "test_a_link_tells_nobody", "test_old_and_anew", "test_text_is_no_key"]
)
def test_a_poetic_name_of_a_test_is_reported(name: str) -> None:
    assert is_poetic(name)


@pytest.mark.parametrize(
    "name", ["test_deleted_blobs_are_gone", "what_was_put", "test_it_is_no_longer_open", "test_if_there_are_no_rows"]
)
def test_other_names_are_not_poetic(name: str) -> None:
    assert not is_poetic(name)
