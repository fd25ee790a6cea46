"""Adapters of pv-rl's weightings and rewards to trainers other than verl, one module for each trainer.

Each scales advantages where whole groups are together, by `scale_advantages` or `response_weights` of `pv_rl.losses`,
and does not change the trainer's own loss. A module imports its trainer; this package imports none.
"""
