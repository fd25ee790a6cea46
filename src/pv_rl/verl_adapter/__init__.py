"""The only part of pv-rl that touches verl: makes an unmodified verl know our modes.

verl imports this module in every process at the end of `import verl` (entry point group `verl.plugins`,
verl/__init__.py:61). It never calls anything and hides failures at DEBUG, so the import does the work and
failures are kept until a config names one of our modes: then the run stops at start with `VerlError`.
A config that names none of them runs verl as it is.
"""

import logging

__all__ = ["install"]

try:
    from pv_rl.verl_adapter.install import install

    install()
except Exception:
    logging.getLogger("pv_rl").exception("pv-rl could not install itself into verl, which goes on without it")
    raise
