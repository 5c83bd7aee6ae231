"""One adapter per system; they run inside that system's own environment and import nothing of ours but `base`."""
