"""Labels: the question to a judge, the parser of its answer, and the voting rule."""
