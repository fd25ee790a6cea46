"""A live view of one run: what `pv-rl watch` reads and shows. It writes nothing into a run but its own page."""
