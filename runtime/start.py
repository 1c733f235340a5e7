"""Entry point of machine-server: signals are held before anything heavy is imported."""

from __future__ import annotations

from telemetry.early_stop import hold


def main() -> None:
    """As runtime.cli.main."""
    hold()
    from runtime.cli import main as run

    run()


if __name__ == "__main__":
    main()
