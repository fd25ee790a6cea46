"""An OpenAI-compatible server that fails on request."""

from judge_server.script import Fault, Latency, Script
from judge_server.server import JudgeServer

__all__ = ["Fault", "JudgeServer", "Latency", "Script"]
