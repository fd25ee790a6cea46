"""The config group ``cluster``: ``hydra.searchpath=[pkg://pv_cpu.hydra_configs] +cluster=cpu``."""
