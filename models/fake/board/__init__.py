"""A simulated board with pins, wires between them, analog inputs and interrupts."""
