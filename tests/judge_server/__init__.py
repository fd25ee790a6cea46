"""An OpenAI-compatible server that fails on request. Put `tests` on sys.path, then `from judge_server import ...`."""

from judge_server.script import Fault, Latency, Script
from judge_server.server import JudgeServer

__all__ = ["Fault", "JudgeServer", "Latency", "Script"]
