"""The rule that only seams depend on the operating system."""

from __future__ import annotations

import pytest

from tools.check_platforms import breaches, main
from tools.check_types import settings_of
from tools.platforms import LINUX, UNLOADABLE, needs_linux


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nif sys.platform == 'win32':\n    pass",
        "import os\nSLOW = os.name == 'nt'",
        "import platform\n\ndef f():\n    return platform.system()",
        "import fcntl",
        "from resource import getrlimit",
        "import msvcrt",
    ],
)
def test_questions_about_the_system_are_refused_outside_the_seams(text: str) -> None:
    assert len(list(breaches("runtime/server/app.py", text))) == 1


def test_seams_functions_and_modules_for_one_system_may_depend_on_it() -> None:
    assert not list(breaches("support/files/locks.py", "import sys\nif sys.platform == 'win32':\n    pass"))
    assert not list(breaches("support/files/locks_windows.py", "import sys, msvcrt\nassert sys.platform == 'win32'"))
    assert not list(breaches("runtime/server/app.py", "def f():\n    import fcntl"))
    assert not list(breaches("hal/linux/serial.py", "import termios"))


def test_the_sources_keep_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out


def test_modules_that_cannot_be_loaded_are_among_those_that_need_linux() -> None:
    assert [name for name in UNLOADABLE if not needs_linux(name)] == []
    assert not needs_linux("support.files.locks")


def test_exceptions_are_settings_of_the_type_checker() -> None:
    text = settings_of({"strict": True, "packages": ["a"], "overrides": [{"module": "x.*", "follow": "skip"}]}, "win32")
    assert text.startswith("[mypy]\nstrict = True\n[mypy-x.*]\nfollow = skip\n")
    assert all(f"[mypy-{name}.*]\nignore_errors = True\n" in text for name in LINUX)
