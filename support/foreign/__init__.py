"""Files of strangers: the only reader of their archives, the only remover and the only walkers of their folders.

Content of strangers may be nested deeper than a path can be long, may have folders that cannot be entered, and may
announce sizes that are not there. Nothing here recurses, follows a link of a stranger, or reads without a bound.

Public, in the order in which to read them:

* `removal_at`: Removal by descriptors, on POSIX: nothing follows a link, and no path is ever concatenated
* `stream`: Decompression of a file of a stranger: gzip, bzip2, xz, lzma or nothing, recognized by its first bytes
* `unpacking`: Unpacking of archives of strangers into a new folder
* `walking`: Walk through folders that may contain anything, without recursion, and without following links
* `removal`: Removal of folders that may contain anything
* `tar`: Reader of tar archives of strangers, in the formats ustar, pax and GNU
* `walking_at`: Walks by descriptors, on POSIX, at any depth and without following links
* `apart`: Unpacking of archives of strangers in a child process, with limits on its memory, processor time and duration
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.foreign.apart import unpack_apart as unpack_apart
    from support.foreign.apart import unpack_apart_blocking as unpack_apart_blocking
    from support.foreign.removal import erase as erase
    from support.foreign.removal import remove as remove
    from support.foreign.removal_at import FOLDER as FOLDER
    from support.foreign.removal_at import enter_folder as enter_folder
    from support.foreign.stream import PIECE as PIECE
    from support.foreign.stream import BadArchiveError as BadArchiveError
    from support.foreign.stream import NoSpaceError as NoSpaceError
    from support.foreign.tar import Archive as Archive
    from support.foreign.tar import Bounds as Bounds
    from support.foreign.tar import MemberKind as MemberKind
    from support.foreign.unpacking import unpack as unpack
    from support.foreign.unpacking import unpack_into as unpack_into
    from support.foreign.walking import walk as walk
    from support.foreign.walking_at import MovedError as MovedError
    from support.foreign.walking_at import flush_tree as flush_tree
    from support.foreign.walking_at import folder_entries as folder_entries
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "removal_at": ["FOLDER", "enter_folder"],
            "stream": ["PIECE", "BadArchiveError", "NoSpaceError"],
            "unpacking": ["unpack", "unpack_into"],
            "walking": ["walk"],
            "removal": ["erase", "remove"],
            "tar": ["Archive", "Bounds", "MemberKind"],
            "walking_at": ["MovedError", "flush_tree", "folder_entries"],
            "apart": ["unpack_apart", "unpack_apart_blocking"],
        },
    )
