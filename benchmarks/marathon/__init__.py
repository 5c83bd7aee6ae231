"""Drains a million jobs in one worker process, and tells whether anything grows or slows down on the way."""
