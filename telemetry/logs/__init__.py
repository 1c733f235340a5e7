"""Log messages: the rules that select them, and the sinks that receive them."""
