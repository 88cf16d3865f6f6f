"""A model server on loopback that always says the same."""

import http.server
import json
import threading

REPLY = "Hello from the scripted model."


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        chunks = [{"delta": {"role": "assistant", "content": REPLY}}, {"delta": {}, "finish_reason": "stop"}]
        lines = [json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0} | chunk]}) for chunk in chunks]
        body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments) -> None:
        pass


class ScriptedModel:
    """Serves while it is entered; `url` is the base URL of the OpenAI API."""

    def __enter__(self) -> "ScriptedModel":
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
