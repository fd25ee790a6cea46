"""A CPU platform for verl."""
