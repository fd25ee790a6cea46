"""`pv-data run`: from sources to a labelled set, in stages that can be stopped at any moment and resumed."""
