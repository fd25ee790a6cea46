"""Client of the fork server, which Ray starts as a worker: `python client.py SOCKET PYTHON SCRIPT ARGUMENTS`.

It imports little, since Ray waits for it. It ends as soon as a worker is forked: Ray knows a worker by the process id
that the worker itself reports. Without a server it becomes `PYTHON SCRIPT ARGUMENTS`.
"""

import array
import json
import os
import socket
import sys

__all__ = ["forked"]


def forked(name: str, argv: list[str]) -> bool:
    """Whether the server forked a worker with these arguments and this process's environment, folder and output."""
    request = json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"\0{name}")
            _, uid, _ = array.array("I", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if uid != os.getuid():  # the environment may hold keys
                return False
            sent = socket.send_fds(connection, [request], [1, 2])
            connection.sendall(request[sent:])
            return connection.recv(32).endswith(b"\n")
    except OSError:
        return False


if __name__ == "__main__":
    server, python, *arguments = sys.argv[1:]
    if not forked(server, arguments):
        os.execv(python, [python, *arguments])
