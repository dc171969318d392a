"""What an observer can see of a run."""
