"""Files of strangers: the only reader of their archives, the only remover and the only walkers of their folders.

Content of strangers may be nested deeper than a path can be long, may have folders that cannot be entered, and may
announce sizes that are not there. Nothing here recurses, follows a link of a stranger, or reads without a bound.

Public, in the order in which to read them:

* `removal`: Removal of folders that may contain anything
* `stream`: Decompression of a file of a stranger: gzip, bzip2, xz, lzma or nothing, recognized by its first bytes
* `tar`: Reader of tar archives of strangers, in the formats ustar, pax and GNU
* `walking`: Walks through folders that may contain anything, without recursion, and without following links
* `unpacking`: Unpacking of archives of strangers into a new folder
* `apart`: Unpacking of archives of strangers in a child process, with limits on its memory, processor time and duration
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.foreign.apart import unpack_apart as unpack_apart
    from support.foreign.apart import unpack_apart_blocking as unpack_apart_blocking
    from support.foreign.removal import FOLDER as FOLDER
    from support.foreign.removal import enter_folder as enter_folder
    from support.foreign.removal import erase as erase
    from support.foreign.removal import remove as remove
    from support.foreign.stream import PIECE as PIECE
    from support.foreign.stream import BadArchiveError as BadArchiveError
    from support.foreign.tar import Archive as Archive
    from support.foreign.tar import Bounds as Bounds
    from support.foreign.tar import MemberKind as MemberKind
    from support.foreign.unpacking import NoSpaceError as NoSpaceError
    from support.foreign.unpacking import unpack as unpack
    from support.foreign.unpacking import unpack_into as unpack_into
    from support.foreign.walking import MovedError as MovedError
    from support.foreign.walking import flush_tree as flush_tree
    from support.foreign.walking import folder_entries as folder_entries
    from support.foreign.walking import walk as walk
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "removal": ["FOLDER", "enter_folder", "erase", "remove"],
            "stream": ["PIECE", "BadArchiveError"],
            "tar": ["Archive", "Bounds", "MemberKind"],
            "walking": ["MovedError", "flush_tree", "folder_entries", "walk"],
            "unpacking": ["NoSpaceError", "unpack", "unpack_into"],
            "apart": ["unpack_apart", "unpack_apart_blocking"],
        },
    )
