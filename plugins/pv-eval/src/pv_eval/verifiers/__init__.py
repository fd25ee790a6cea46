"""Where votes come from: an OpenAI-compatible endpoint, a local checkpoint that is served, or a file of traces."""
