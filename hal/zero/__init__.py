"""gpiozero in both directions: its pin factories as an implementation of our ports, and our ports as a pin factory."""
