"""Pure values and decisions: no I/O, no event loop, nothing but the standard library."""
