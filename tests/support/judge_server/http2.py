"""A small HTTP/2 server over TLS, with `answer`, `twice`, `hang`, `reset` (the stream) and `leave` (GOAWAY)."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events

from judge_server.replies import completion, prompt_of, verdict
from judge_server.script import Script


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key. Raises FileNotFoundError without `openssl`."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += [
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


class Http2Connection(asyncio.Protocol):
    """One connection; `choose` says what happens to a prompt."""

    def __init__(self, choose: Callable[[str], str]) -> None:
        self.choose = choose
        self.bodies: dict[int, bytes] = {}
        self.closed = False
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.h2.initiate_connection()
        transport.write(self.h2.data_to_send())

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.bodies[event.stream_id] = b""
            elif isinstance(event, h2.events.DataReceived):
                self.bodies[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(event.stream_id)
        self.transport.write(self.h2.data_to_send())

    def answer(self, stream: int) -> None:
        prompt = prompt_of(json.loads(self.bodies.pop(stream)))
        choice = self.choose(prompt)
        if choice == "reset":
            self.h2.reset_stream(stream, error_code=2)
        elif choice == "leave":
            self.h2.close_connection(last_stream_id=stream - 2)
        elif choice in ("answer", "twice"):
            script = Script()
            raw = json.dumps(completion(script, prompt, verdict(script, prompt))).encode()
            headers = [
                (":status", "200"),
                ("content-type", "application/json"),
                ("content-length", str(len(raw))),
            ]
            self.h2.send_headers(stream, headers)
            self.h2.send_data(stream, raw, end_stream=True)
            if choice == "twice":
                self.transport.write((frames := self.h2.data_to_send()) + frames)


async def serve_http2(
    folder: Path, choose: Callable[[str], str]
) -> tuple[asyncio.Server, str, list[Http2Connection]]:
    """Listen; returns the server, the client's `url` and all connections. The certificate is `folder/cert.pem`."""
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])
    loop = asyncio.get_running_loop()
    connections: list[Http2Connection] = []

    def connect() -> Http2Connection:
        connections.append(Http2Connection(choose))
        return connections[-1]

    server = await loop.create_server(connect, "127.0.0.1", 0, ssl=context)
    return server, f"https://localhost:{server.sockets[0].getsockname()[1]}/v1", connections
