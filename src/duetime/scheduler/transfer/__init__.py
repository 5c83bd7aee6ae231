"""Schedules and whole stores, moved from one place to another."""
