"""Unpacking of archives of strangers into a new folder. Not on Windows, where names mean other things."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from support.foreign.unpacking_windows import check_system as check_system
    from support.foreign.unpacking_windows import unpack as unpack
    from support.foreign.unpacking_windows import unpack_into as unpack_into
else:
    from support.foreign.unpacking_at import unpack as unpack
    from support.foreign.unpacking_at import unpack_into as unpack_into

    def check_system() -> None:
        """Raise BadArchiveError where archives cannot be unpacked."""
