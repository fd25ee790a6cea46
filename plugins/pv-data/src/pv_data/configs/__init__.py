"""Configs of `pv-data run`: `pv-data run gsm8k_judges`, or a file that names one in its defaults list."""
