"""Sources: one adapter a file, `read(path, **options)`, for untrusted files."""
