"""A recording proxy in front of the model, which counts the requests and tokens of all agents in the same way."""

from __future__ import annotations

import http.client
import http.server
import json
import socketserver
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL_PATHS = ("/chat/completions", "/completions", "/responses", "/messages")

BODY_BYTES_MAX = 64 << 20
"""The longest request or response that is kept."""

IDLE_SECONDS_MAX = 900
"""A model on a busy machine reads a long prompt for minutes before its first byte."""


@dataclass
class Exchange:
    """A request to the model, and what the answer cost."""

    request: dict[str, Any]
    status: int = 0
    response: bytes = b""
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


@dataclass
class ModelProxy:
    """Serves while it is entered, on a Unix socket or else on a port of the loopback, and sends each request to `url`.

    The agent needs no key: `key` is added here. Answers are streamed as they arrive.
    """

    url: str
    socket_path: Path | None
    key: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    port: int = 0

    def __enter__(self) -> ModelProxy:
        proxy = self

        class Handler(_Handler):
            model = proxy

        if self.socket_path:
            self._server: socketserver.BaseServer = _UnixServer(str(self.socket_path), Handler)
        else:
            server = _TcpServer(("127.0.0.1", 0), Handler)
            self._server, self.port = server, server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def connect(self) -> tuple[http.client.HTTPConnection, str]:
        url = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        return kind(url.hostname or "", url.port, timeout=IDLE_SECONDS_MAX), url.path.rstrip("/")


class _Server(socketserver.ThreadingMixIn):
    daemon_threads = True

    def handle_error(self, _request: object, _address: object) -> None:
        # An agent that hangs up is not an error of the proxy.
        pass


class _UnixServer(_Server, socketserver.UnixStreamServer):
    pass


class _TcpServer(_Server, socketserver.TCPServer):
    pass


class _Handler(http.server.BaseHTTPRequestHandler):
    model: ModelProxy
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "agent"

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._forward(b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = self._read_chunks()
        else:
            body = self.rfile.read(min(length, BODY_BYTES_MAX))
        self._forward(body)

    def _read_chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if len(body) > BODY_BYTES_MAX:
                raise ValueError("the request is too long")
        self.rfile.readline()
        return body

    def _forward(self, body: bytes) -> None:
        exchange, body = self._begin_exchange(body)
        started = time.monotonic()
        connection, prefix = self.model.connect()
        path = self.path.removeprefix("/v1") if prefix.endswith("/v1") else self.path
        headers = {name: value for name, value in self.headers.items() if name.lower() in PASSED_HEADERS}
        headers |= {"Content-Length": str(len(body)), "Accept-Encoding": "identity", **key_headers(self.model.key)}
        self.close_connection = True
        sent = b""
        try:
            connection.request(self.command, prefix + path, body, headers)
            response = connection.getresponse()
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type") or "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            if exchange:
                exchange.status = response.status
            while data := response.read1(65536):
                if len(sent) < BODY_BYTES_MAX:
                    sent += data
                self.wfile.write(data)
                self.wfile.flush()
        finally:
            connection.close()
            if exchange:
                exchange.response = sent
                exchange.seconds = time.monotonic() - started
                read_usage(exchange)

    def _begin_exchange(self, body: bytes) -> tuple[Exchange | None, bytes]:
        if not self.path.split("?")[0].endswith(MODEL_PATHS):
            return None, body
        try:
            request = json.loads(body)
        except ValueError:
            return None, body
        # Without this, streams of some servers have no usage.
        if request.get("stream") and "messages" in request and self.path.split("?")[0].endswith("/chat/completions"):
            request.setdefault("stream_options", {"include_usage": True})
            body = json.dumps(request).encode()
        exchange = Exchange(request)
        self.model.exchanges.append(exchange)
        return exchange, body


PASSED_HEADERS = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "user-agent")


def key_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "x-api-key": key} if key else {}


def read_usage(exchange: Exchange) -> None:
    """Sets the tokens from the response: a JSON value, or a stream of events. The last usage counts."""
    text = exchange.response.decode(errors="replace")
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")] or [text]
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        for holder in (value, value.get("response"), value.get("message")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                apply_usage(exchange, usage)


def apply_usage(exchange: Exchange, usage: dict[str, Any]) -> None:
    """Understands Chat Completions, Responses and Messages; only Messages counts cached tokens apart."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    apart = (usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0)
    tokens_in = (usage.get("prompt_tokens") or usage.get("input_tokens") or 0) + sum(apart)
    exchange.tokens_in = tokens_in or exchange.tokens_in
    exchange.tokens_cached = cached + apart[0] or exchange.tokens_cached
    exchange.tokens_out = usage.get("completion_tokens") or usage.get("output_tokens") or exchange.tokens_out


def count_conversations(exchanges: list[Exchange]) -> int:
    """Counts conversations with tools: an agent's, and those of its children. A request for a title has no tools."""
    starts = set()
    for exchange in exchanges:
        if exchange.request.get("tools"):
            messages = exchange.request.get("messages") or exchange.request.get("input") or []
            # The conversation is the same for as long as its messages begin alike.
            starts.add(json.dumps(messages[: _first_answer(messages)], sort_keys=True))
    return len(starts)


def has_nudge(exchanges: list[Exchange]) -> bool:
    """Whether an agent said something in the user's name after the model had answered, so the model had to be asked again."""
    for exchange in exchanges:
        messages = exchange.request.get("messages") or []
        for message in messages[_first_answer(messages) :]:
            content = message.get("content") if message.get("role") == "user" else None
            if isinstance(content, list):
                # The Messages API has results of tools in messages of the user.
                content = [part for part in content if part.get("type") != "tool_result"]
            if content:
                return True
    return False


def _first_answer(messages: list[Any]) -> int:
    return next((i for i, message in enumerate(messages) if isinstance(message, dict) and message.get("role") == "assistant"), len(messages))
