"""GPIO lines of the kernel's character device: chips, lines and edges."""
