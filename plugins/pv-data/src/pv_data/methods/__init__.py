"""Generation methods and their prompts."""
