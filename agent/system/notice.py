"""Text at the top of each file that machine-agent writes. Pure."""

from __future__ import annotations


def notice(comment: str, removal: str) -> str:
    """Return the lines that say which program manages a file and how to remove it.

    `comment` begins a comment in the language of the file; `removal` is the setting that removes the file.
    """
    return "".join(
        f"{comment} {line}\n"
        for line in (
            "Written by machine-agent, from agent.system_configuration of the machine's configuration in the cloud.",
            f"To remove this file, {removal}, or uninstall machine-agent.",
            "machine-agent does not overwrite a file that was edited: it reports the file and leaves it alone.",
        )
    )
