"""Files on this computer: durable replacement, permissions, changes, rings of files.

Public, in the order in which to read them:

* `durable`: Files that survive a power cut: created or replaced as a whole, and written to the disk
* `inotify`: Wait for changes in directories, without a thread and without polling: with Linux inotify, one descriptor
  for all
* `locks`: Advisory locks of open files, which the kernel releases when their process ends: none is ever stale
* `private` (module): Check and restrict the permissions of files and folders with secrets
* `file_ring`: A ring of files: append to the newest, delete the oldest
* `watched`: Notice changes of files, also when they are reached through symbolic links or replaced, and call a function
  then
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.files import private as private
    from support.files.durable import allocate as allocate
    from support.files.durable import create_file as create_file
    from support.files.durable import forget_cached as forget_cached
    from support.files.durable import is_link as is_link
    from support.files.durable import open_file as open_file
    from support.files.durable import read_at as read_at
    from support.files.durable import read_link as read_link
    from support.files.durable import replace_file as replace_file
    from support.files.durable import replace_link as replace_link
    from support.files.durable import set_mode as set_mode
    from support.files.durable import sync_data as sync_data
    from support.files.durable import sync_file as sync_file
    from support.files.durable import sync_folder as sync_folder
    from support.files.durable import write_at as write_at
    from support.files.file_ring import FileRing as FileRing
    from support.files.inotify import CLOSE_WRITE as CLOSE_WRITE
    from support.files.inotify import CREATE as CREATE
    from support.files.inotify import DELETE as DELETE
    from support.files.inotify import ITSELF as ITSELF
    from support.files.inotify import MOVED_FROM as MOVED_FROM
    from support.files.inotify import MOVED_TO as MOVED_TO
    from support.files.inotify import Inotify as Inotify
    from support.files.locks import lock_file as lock_file
    from support.files.locks import try_lock_file as try_lock_file
    from support.files.watched import follow_files as follow_files
    from support.files.watched import watched_places as watched_places
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "durable": [
                "allocate",
                "create_file",
                "forget_cached",
                "is_link",
                "open_file",
                "read_at",
                "read_link",
                "replace_file",
                "replace_link",
                "set_mode",
                "sync_data",
                "sync_file",
                "sync_folder",
                "write_at",
            ],
            "inotify": ["CLOSE_WRITE", "CREATE", "DELETE", "ITSELF", "MOVED_FROM", "MOVED_TO", "Inotify"],
            "locks": ["lock_file", "try_lock_file"],
            "file_ring": ["FileRing"],
            "watched": ["follow_files", "watched_places"],
        },
        modules=["private"],
    )
