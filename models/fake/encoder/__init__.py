"""A simulated encoder that counts the ticks of a motor's shaft, through pins of a board if configured."""
