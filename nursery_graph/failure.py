"""What an exception says about the node that raised it."""

from __future__ import annotations


def is_interrupt(error: BaseException) -> bool:
    """Whether it is a KeyboardInterrupt or a group with one in it."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(KeyboardInterrupt) is not None
    return isinstance(error, KeyboardInterrupt)


def describe(error: BaseException) -> str:
    """An exception in one line: its type and text; the members of a group."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(member) for member in error.exceptions)
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
