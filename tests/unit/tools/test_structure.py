"""The figures about the structure, on small packages."""

from tools.structure import lines_of, structure

SOURCES = {
    "a/__init__.py": "",
    "a/hub.py": "import a.low\nimport b.one\n",
    "a/low.py": "",
    "b/one.py": "def run():\n    from a import low\n",
    "b/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b.three import X\nimport a.hub\n",
    "b/three.py": "import b.two\nimport a.hub\n",
}


def test_cycles_include_imports_for_type_checking() -> None:
    assert structure(SOURCES).cycles == {frozenset({"b.two", "b.three"})}


def test_the_hub_has_many_importers_and_many_imports() -> None:
    figures = structure(SOURCES)
    assert (figures.hub, figures.importers["a.hub"], len(figures.imports["a.hub"])) == ("a.hub", 2, 2)


def test_the_lines_have_all_figures() -> None:
    assert list(lines_of(structure(SOURCES))) == [
        "source files: 6",
        "folders with more than 15 files: 0; with more than 12: 0",
        "largest folders: a 3, b 3",
        "import cycles: 1, with 2 modules",
        "modules imported from other packages: 3 (a 2, b 1)",
        "largest hub: a.hub, imported by 2 and importing 2 modules",
    ]
