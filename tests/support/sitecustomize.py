"""Guards the network of child processes: Python imports this module at its start, as this folder is in PYTHONPATH."""

import network_guard

network_guard.install()
