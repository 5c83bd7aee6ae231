"""What every worker does apart from its jobs: the lease, the rescue of others, schedules, commands."""
