"""Updates of the program: two slots, signed images, and a trial that rolls back. A device boots by `boot`."""
