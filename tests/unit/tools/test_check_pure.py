"""The check of pure modules finds imports that contradict the docstring."""

from pathlib import Path

from tools.check_pure import problems


def package(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_module_that_says_it_is_pure_imports_no_clock(tmp_path: Path) -> None:
    root = package(tmp_path, {"table.py": '"""A table. Pure."""\n\n\ndef now():\n    from time import time\n'})
    (problem,) = problems(root)
    assert problem.startswith(f"{root / 'table.py'}:5: imports time")


def test_a_package_that_says_it_is_pure_speaks_for_its_modules(tmp_path: Path) -> None:
    root = package(tmp_path, {"p/__init__.py": '"""Tables; pure."""\n', "p/q/r.py": '"""Rows."""\nimport os.path\n'})
    (problem,) = problems(root)
    assert "imports os" in problem


def test_other_modules_import_what_they_need(tmp_path: Path) -> None:
    files = {
        "a.py": '"""In pure Python."""\nimport socket\n',
        "b.py": "import trio\n",
        "c.py": '"""Pure."""\nimport math\n',
    }
    assert list(problems(package(tmp_path, files))) == []
