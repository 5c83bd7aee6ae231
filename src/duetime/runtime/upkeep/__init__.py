"""What every worker does beside its jobs: the lease, the rescue of others, schedules, commands."""
