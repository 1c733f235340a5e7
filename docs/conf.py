"""Sphinx settings: Markdown pages, one theme, warnings are errors."""

project = "machine runtime"
author = "the machine runtime authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "machine runtime"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]
