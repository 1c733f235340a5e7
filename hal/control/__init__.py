"""Motion control: trajectories, PID, encoders, drive geometry and odometry. Pure."""
