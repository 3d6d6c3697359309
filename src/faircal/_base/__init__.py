"""What every package may use and what knows of none: errors, registry, files, jobs, checkpoints."""
