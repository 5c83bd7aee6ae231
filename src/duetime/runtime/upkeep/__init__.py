"""What every worker does besides its jobs: the lease, the rescue of others, schedules, commands."""
