"""CPU time that pv-rl adds to `import verl`, in fresh processes.

    python benchmarks/import_cost.py [PROCESSES]

verl loads the adapter at the end of its own import, so the cost is that of the adapter's import after it. The
difference of two whole imports of verl, several seconds each, would be lost in their noise.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

CODE = """
import time
begin = time.process_time(); import verl
middle = time.process_time(); import pv_rl.verl_adapter
print(middle - begin, time.process_time() - middle)
"""


def measure() -> tuple[float, float]:
    """Milliseconds of verl's import and of the adapter's."""
    environment = {**os.environ, "VERL_USE_EXTERNAL_PLUGINS": "none"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    verl, adapter = (1000 * float(seconds) for seconds in done.stdout.split())
    return verl, adapter


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    verl, adapter = zip(*(measure() for _ in range(count)), strict=True)
    for name, times in (("import verl", verl), ("pv-rl's part", adapter)):
        print(f"{name:13} median {statistics.median(times):6.0f} ms, {min(times):.0f} to {max(times):.0f}")


if __name__ == "__main__":
    main()
