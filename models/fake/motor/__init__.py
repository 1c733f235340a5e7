"""A simulated motor whose power determines its speed and position, measured by an encoder if configured."""
