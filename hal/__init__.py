"""Hardware: ports, the families behind them, and their errors."""
