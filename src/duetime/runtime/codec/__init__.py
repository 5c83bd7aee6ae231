"""Arguments and results as JSON."""
