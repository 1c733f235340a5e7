"""Movement sensor `wheeled-odometry`: the position of a wheeled base, computed from its motors."""
