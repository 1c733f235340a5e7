"""The machine's connection to its cloud: source of the configuration, destination of logs."""
