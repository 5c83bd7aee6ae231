"""A task scheduler that keeps its schedules and jobs in your database."""
