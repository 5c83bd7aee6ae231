"""Child processes in which CPU-bound tasks run."""
