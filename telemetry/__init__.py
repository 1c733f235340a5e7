"""Log messages, log rules and sinks, diagnostic data, metrics and traces of a program."""
