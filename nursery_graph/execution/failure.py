"""Classify and describe the exception with which a node ended."""

from __future__ import annotations


def is_interrupt(error: BaseException) -> bool:
    """Return whether `error` is a KeyboardInterrupt or an exception group that contains one."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(KeyboardInterrupt) is not None
    return isinstance(error, KeyboardInterrupt)


def describe(error: BaseException) -> str:
    """Describe an exception in one line: type and text; for a group, those of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(member) for member in error.exceptions)
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
