"""Measures how Duetime grows: with workers, with jobs stored for later, and with schedules."""
