"""What is stored of jobs, tasks, credentials and audit entries, as it is read back."""
