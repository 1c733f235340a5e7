"""gpiozero both ways: its pin factories behind our ports, and our ports as a pin factory of it."""
