"""The check of names finds empty words and dialect in whatever a module binds."""

import ast

import pytest

from tools.check_names import ambiguous_classes, bound_names, is_bad, is_poetic

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


JOB = "class Job: pass\n\nclass _Job: pass\n"


def test_a_class_name_with_two_meanings_is_reported() -> None:
    (within,) = ambiguous_classes({"cloud/a.py": JOB, "cloud/b.py": JOB}, {})
    assert within == "cloud/a.py: class `Job` is also in cloud/b.py: say whose it is"
    sources = {"schema/a.py": JOB, "training/b.py": JOB}
    assert list(ambiguous_classes(sources, {"schema.a": {"Job"}})) == []
    (public,) = ambiguous_classes(sources, {"schema.a": {"Job"}, "training.b": {"Job"}})
    assert public.startswith("schema/a.py: class `Job` is also public in training/b.py")


def test_models_and_messages_say_whose_a_class_is() -> None:
    assert list(ambiguous_classes({"models/x/chip.py": JOB, "models/x/model.py": JOB}, {})) == []
    assert list(ambiguous_classes({"cloud/jobs.py": JOB, "cloud/job_messages.py": JOB}, {})) == []
