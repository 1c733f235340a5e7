"""Hardware abstraction: ports, their implementations (Linux, gpiozero, simulation), and their errors."""
