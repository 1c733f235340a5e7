import configparser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.system.journald import journald_text


def settings(text: str) -> dict[str, str]:
    """Return the keys as journald reads them: without the comments."""
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser.sections() == ["Journal"]
    return dict(parser["Journal"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), {"SystemMaxUse": "512M", "RuntimeMaxUse": "512M", "Storage": "persistent"}),
        ((0, 0), {"SystemMaxUse": "512M", "RuntimeMaxUse": "512M", "Storage": "persistent"}),
        ((100, 20, "volatile"), {"SystemMaxUse": "100M", "RuntimeMaxUse": "20M", "Storage": "volatile"}),
        ((-1, 20, "auto"), {"RuntimeMaxUse": "20M", "Storage": "auto"}),
        ((20, -1, "none"), {"SystemMaxUse": "20M", "Storage": "none"}),
        (
            (-5, 1, "persistent\nSyncIntervalSec=0"),
            {"SystemMaxUse": "512M", "RuntimeMaxUse": "1M", "Storage": "persistent"},
        ),
    ],
)
def test_limits(arguments: tuple[int, int, str], expected: dict[str, str]) -> None:
    text = journald_text(*arguments)
    assert text is not None
    assert settings(text) == expected


def test_no_file_without_any_limit() -> None:
    assert journald_text(-1, -1, "volatile") is None


def test_the_text_begins_with_its_owner_and_the_way_to_remove_it() -> None:
    comment = (journald_text() or "").partition("[Journal]")[0]
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert "machine-agent" in comment
    assert "To remove" in comment
    assert "logging_journald_system_max_use_megabytes" in comment


@given(st.integers(), st.integers(), st.text())
def test_any_setting_is_accepted(system: int, runtime: int, storage: str) -> None:
    text = journald_text(system, runtime, storage)
    assert text is None or settings(text)["Storage"] in ("persistent", "volatile", "auto", "none")
