"""Ctrl-C in commands that run on Trio: an ordered end, and errors as they were raised."""

from __future__ import annotations

import signal

import click
import pytest
import trio

from command.interrupts import run_until_interrupted


async def returned() -> int:
    return 7


def test_the_result_is_returned_and_the_handler_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run_until_interrupted(returned) == 7
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(4), click.exceptions.Exit(3)])
def test_an_error_is_raised_without_a_group(error: BaseException) -> None:
    async def main() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        run_until_interrupted(main)
    assert caught.value is error


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupted_command_is_cancelled_and_ends_in_order(fails: bool) -> None:
    steps: list[str] = []

    async def main() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            steps.append("goes on")
            await trio.sleep_forever()
        except trio.Cancelled:
            steps.append("cancelled")
            if fails:
                raise ValueError("cut off") from None
            raise
        finally:
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_until_interrupted(main)
    assert steps == ["goes on", "cancelled", "cleaned up"]


def test_a_second_interrupt_does_not_wait_for_the_cleanup() -> None:
    async def main() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                signal.raise_signal(signal.SIGINT)
                await trio.sleep_forever()

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        run_until_interrupted(main)


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:

        async def main() -> int:
            signal.raise_signal(signal.SIGINT)
            await trio.lowlevel.checkpoint()
            return 1

        assert run_until_interrupted(main) == 1
    finally:
        signal.signal(signal.SIGINT, before)
