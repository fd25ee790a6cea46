"""Sources: one file an adapter, `read(path, **options)`, for untrusted files."""
