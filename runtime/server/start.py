"""Entry point of machine-server, which holds signals before it imports large modules."""

from __future__ import annotations

from support import hold_signals


def main() -> None:
    """Run machine-server; see runtime.server.cli.main."""
    hold_signals()
    from runtime.server.cli import main as run

    run()


if __name__ == "__main__":
    main()
