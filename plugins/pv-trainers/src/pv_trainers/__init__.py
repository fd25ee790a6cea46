"""Adapters of pv-rl's weightings and rewards to trainers other than verl, one module for each trainer.

Each scales advantages by `pv_rl.losses.scale_advantages` where whole groups are together, and leaves the trainer's own
loss as it is. A module imports its trainer; this package imports none.
"""
