"""Schedules: what is stored of them, when they fire, and how they change."""
