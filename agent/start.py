"""Entry point of machine-agent, which holds signals before it imports large modules."""

from __future__ import annotations

from support import hold_signals


def main() -> None:
    """Run machine-agent; see agent.cli.main."""
    hold_signals()
    from agent.cli import main as run

    run()


if __name__ == "__main__":
    main()
