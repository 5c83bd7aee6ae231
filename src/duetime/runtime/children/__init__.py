"""Child processes for tasks that keep a processor busy."""
