"""Entry point of machine-cloud: holds back signals before the slow imports."""

from __future__ import annotations

from support import hold_signals, lean_imports


def main() -> None:
    """Run cloud.server.cli.main, with signals held back while it is imported."""
    hold_signals()
    with lean_imports():
        from cloud.server.cli import main as run

    run()


if __name__ == "__main__":
    main()
