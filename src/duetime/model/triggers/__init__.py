"""Triggers: the pure rules that say when something is due."""
