"""The server: listens, logs, and lets the script decide what each request meets.

In a test: `with JudgeServer(Script(...)) as server: ... server.url, server.chats()`. As a process:
`python tests/support/judge_server/server.py --port 0 --script script.json --log requests.jsonl`, which prints its URL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from judge_server import replies
from judge_server.failing import fail
from judge_server.script import Script
from judge_server.wire import Request, read_request, reset, send, wait

CHAT = "POST /v1/chat/completions"


class JudgeServer:
    """Serves in a thread of its own between `start` and `stop`."""

    def __init__(self, script: Script | None = None, *, port: int = 0, log: str | Path | None = None) -> None:
        self.script = script or Script()
        self.requests: list[dict[str, Any]] = []
        """One entry a request, as it came: number (0 unless it is a chat request), t (seconds since the first chat
        request), wall (Unix time), target, headers (without Authorization), key (whether the right one came; None where
        none is asked for), body, fault, in_flight (this one included)."""
        self.in_flight = 0
        self.connections: set[asyncio.StreamWriter] = set()
        """Those that stand now."""
        self.accepted = 0
        """Connections, ever."""
        self._port = port
        self._log = Path(log) if log else None
        self._count = 0
        self._began: float | None = None
        self._listener: asyncio.Server | None = None
        self._outages: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """For the client's `url`."""
        return f"http://127.0.0.1:{self._port}/v1"

    def chats(self) -> list[dict[str, Any]]:
        """The log's chat requests."""
        return [one for one in self.requests if one["number"]]

    def start(self) -> JudgeServer:
        """Listen; the port is known afterwards."""
        self._thread.start()
        self._call(self._listen())
        return self

    def stop(self) -> None:
        """Close everything."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def go_down(self) -> None:
        """Reset every connection and refuse new ones."""
        self._call(self._go_down())

    def come_back(self) -> None:
        """Listen again, on the same port."""
        self._call(self._listen())

    def __enter__(self) -> JudgeServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _call(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(
                self._serve, "127.0.0.1", self._port, limit=2**26, backlog=1024
            )
            self._port = self._listener.sockets[0].getsockname()[1]

    async def _go_down(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in list(self.connections):
            reset(writer)

    async def _end(self) -> None:
        await self._go_down()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _outage(self, begin_s: float, end_s: float) -> None:
        await asyncio.sleep(begin_s)
        await self._go_down()
        await asyncio.sleep(end_s - begin_s)
        await self._listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        self.accepted += 1
        try:
            while True:
                request = await read_request(reader)
                self.in_flight += 1
                try:
                    await self._answer(reader, writer, request)
                finally:
                    self.in_flight -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # one of us has closed it
        except asyncio.CancelledError:
            pass  # asyncio's streams would print it
        finally:
            self.connections.discard(writer)
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request
    ) -> None:
        script, chat = self.script, request.target == CHAT
        if chat:
            self._count += 1
            if self._began is None:
                self._began = time.monotonic()
                self._outages = [asyncio.ensure_future(self._outage(*times)) for times in script.outages]
        number = self._count if chat else 0
        elapsed = time.monotonic() - self._began if self._began is not None else 0.0
        prompt = replies.prompt_of(request.body)
        fault = script.fault(number, elapsed, prompt) if chat else None
        key_ok = request.key == script.key if script.key else None
        self._note(
            request, number=number, t=round(elapsed, 4), key=key_ok, fault=fault.kind if fault else None
        )
        if key_ok is False:
            return await send(writer, 401, replies.error("that key is wrong"))
        if not chat:
            known = request.target == "GET /v1/models"
            return await send(writer, 200 if known else 404, replies.models(script) if known else {})
        await wait(reader, script.latency_s(number))
        if fault is not None:
            return await fail(reader, writer, script, fault, request)
        content = (
            script.reply(prompt, request.body.get("model", ""))
            if script.reply
            else replies.verdict(script, prompt)
        )
        return await send(writer, 200, replies.completion(script, prompt, content))

    def _note(self, request: Request, **entry: Any) -> None:
        entry |= {
            "wall": time.time(),
            "target": request.target,
            "headers": request.headers,
            "body": request.body,
        }
        entry["in_flight"] = self.in_flight
        self.requests.append(entry)
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def main() -> None:
    """Serve until the process is told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", help="JSON file of a Script; see script.py")
    parser.add_argument("--log", help="file that gets one JSON object a request")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    script = Script.read(options.script) if options.script else Script()
    with JudgeServer(script, port=options.port, log=options.log) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
