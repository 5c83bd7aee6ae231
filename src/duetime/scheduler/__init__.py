"""The public object: a registry of tasks and the verbs of a client."""
