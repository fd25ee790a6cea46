"""Report on labels: how often they are true where the truth is known, and how far the judges agree."""
