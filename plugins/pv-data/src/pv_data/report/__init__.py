"""What a run's labels are worth: against what is known, and by how far the judges agree."""
