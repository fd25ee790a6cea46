"""From an untrusted file to checked fields: one row after another, and what is unfit aside with its reason."""
