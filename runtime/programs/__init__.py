"""Programs of modules: unpacks archives, runs first-run programs, builds command lines, and stores packages."""
