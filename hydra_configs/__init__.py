"""Hydra configs of pv-rl, on top of verl's `ppo_trainer`. Reached as `pkg://pv_rl.hydra_configs`."""
