"""A model server on loopback that says what a script says."""

import http.server
import json
import threading
from pathlib import Path
from typing import Any

REPLY = "Hello from the scripted model."


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns a reply of a script that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": 0, "id": "call-1", "type": "function", "function": function}


class ScriptedModel:
    """Serves while it is entered; `url` is the base URL of the OpenAI API.

    Each request gets the next reply, a text or a call, and the last one for ever. `requests` has their bodies.
    """

    def __init__(self, script: list[Any] | None = None) -> None:
        self.script = list(script or [REPLY])
        self.requests: list[Any] = []

    def __enter__(self) -> "ScriptedModel":
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.answer(self, request)

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def write_config(self, home: Path) -> None:
        """Writes a configuration with this model into a home directory."""
        directory = home / ".crow"
        directory.mkdir(exist_ok=True)
        directory.chmod(0o700)
        (directory / "config.yaml").write_text(
            f"providers: {{ here: {{ base_url: '{self.url}', api_key: unused }} }}\n"
            "models: { scripted: { provider: here, model: scripted, context_window: 100000 } }\n"
        )

    def answer(self, handler: http.server.BaseHTTPRequestHandler, request: Any) -> None:
        self.requests.append(request)
        reply = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        is_text = isinstance(reply, str)
        delta = {"content": reply} if is_text else {"tool_calls": [reply]}
        chunks = [
            {"delta": {"role": "assistant"} | delta},
            {"delta": {}, "finish_reason": "stop" if is_text else "tool_calls"},
        ]
        lines = [
            json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0} | chunk]}) for chunk in chunks
        ]
        body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
