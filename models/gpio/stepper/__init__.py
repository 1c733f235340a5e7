"""Motor `gpiostepper`: a stepper motor on a driver chip with step and direction inputs."""
