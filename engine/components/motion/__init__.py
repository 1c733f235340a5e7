"""Components that move: arms, bases, gantries, grippers, motors, servos."""
