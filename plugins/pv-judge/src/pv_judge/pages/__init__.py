"""Tables and pages: blocks of content, rendered for a terminal, as Markdown and as HTML."""
