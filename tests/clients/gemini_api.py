"""The Gemini API in front of the scripted model, for agents that speak no other: gemini_api.py BASE_URL.

Prints its own address and serves until stdin ends. It translates text, tools and streams, and nothing else."""

import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BASE_URL = sys.argv[1]


def text_of(content):
    return "".join(part.get("text", "") for part in content.get("parts", []))


def to_messages(request):
    messages = []
    if "systemInstruction" in request:
        messages.append({"role": "system", "content": text_of(request["systemInstruction"])})
    open_calls = []
    for content in request["contents"]:
        parts = content.get("parts", [])
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        for result in results:
            identity = open_calls.pop(0)
            messages.append({"role": "tool", "tool_call_id": identity, "content": json.dumps(result.get("response"))})
        text = text_of(content)
        if content.get("role") == "model":
            message = {"role": "assistant", "content": text}
            if calls:
                open_calls = [f"call_{len(messages)}_{index}" for index in range(len(calls))]
                message["tool_calls"] = [
                    {
                        "id": identity,
                        "type": "function",
                        "function": {"name": call["name"], "arguments": json.dumps(call.get("args", {}))},
                    }
                    for identity, call in zip(open_calls, calls)
                ]
            messages.append(message)
        elif text:
            messages.append({"role": "user", "content": text})
    return messages


def to_tools(request):
    declared = [tool for group in request.get("tools", []) for tool in group.get("functionDeclarations", [])]
    nothing = {"type": "object", "properties": {}}
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool.get("parametersJsonSchema") or nothing,
            },
        }
        for tool in declared
    ]


def answers(request):
    """The parts of the model's answer as they come."""
    body = {
        "model": "scripted",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": to_messages(request),
    }
    tools = to_tools(request)
    if tools:
        body["tools"] = tools
    asked = urllib.request.Request(
        f"{BASE_URL}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    calls = {}
    with urllib.request.urlopen(asked) as answer:
        for line in answer:
            data = line.decode().strip().removeprefix("data: ")
            if not data.startswith("{"):
                continue
            for choice in json.loads(data).get("choices", []):
                delta = choice.get("delta", {})
                if delta.get("content"):
                    yield {"text": delta["content"]}
                for call in delta.get("tool_calls", []):
                    known = calls.setdefault(call.get("index", 0), {"name": "", "arguments": ""})
                    for key, value in call.get("function", {}).items():
                        known[key] += value or ""
    for call in calls.values():
        yield {"functionCall": {"name": call["name"], "args": json.loads(call["arguments"] or "{}")}}


def chunk(parts, reason=None):
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
    if reason:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        is_stream = "streamGenerateContent" in self.path
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.end_headers()
        if "countTokens" in self.path:
            self.wfile.write(b'{"totalTokens": 1}')
        elif is_stream:
            for part in answers(request):
                self.send_event(chunk([part]))
            self.send_event(chunk([], "STOP"))
        else:
            self.wfile.write(json.dumps(chunk(list(answers(request)), "STOP")).encode())

    def send_event(self, event):
        self.wfile.write(f"data: {json.dumps(event)}\r\n\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
