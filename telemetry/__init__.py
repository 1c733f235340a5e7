"""What a machine tells about itself: log messages and the rules that choose them."""
