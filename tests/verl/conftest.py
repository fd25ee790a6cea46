import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
