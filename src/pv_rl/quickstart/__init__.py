"""`pv-rl quickstart`: the real verl trainer on the lab verifier, on a CPU, with something to look at."""

from pv_rl.quickstart.run import quickstart
from pv_rl.quickstart.settings import Settings

__all__ = ["Settings", "quickstart"]
