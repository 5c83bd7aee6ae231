"""Writes what became of jobs."""
