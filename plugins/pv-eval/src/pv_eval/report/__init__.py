"""A report of one or several verifiers on a set: a page, Markdown and JSON."""
