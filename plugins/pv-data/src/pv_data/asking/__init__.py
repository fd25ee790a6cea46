"""Clients of models, on top of `pv_judge.client`: every answer is kept before it is used."""
