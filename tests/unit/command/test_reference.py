"""The command line reference is current, and the program starts quickly."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_command_reference", ROOT / "tools" / "gen_command_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    module = generator()
    assert module.PAGE.read_text() == module.page(), "run make generate"


def test_help_imports_neither_trio_nor_messages() -> None:
    code = (
        "import sys; from command.cli import main; main(['call', '--help'], standalone_mode=False);"
        "print(sorted({'trio', 'google.protobuf', 'msgspec', 'jinja2', 'starlette'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
