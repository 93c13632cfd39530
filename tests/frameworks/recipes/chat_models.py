"""A model behind OpenAI's chat API that makes two calls in one turn, then repeats their results."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class _Turn(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = [one["content"] for one in request["messages"] if one["role"] == "tool"]
        calls = [_write_call(to, amount) for to, amount in (("ann", 7), ("bob", 8))]
        message = {"role": "assistant", "content": " | ".join(results)} if results else {"tool_calls": calls}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **message}}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
        sent = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def _write_call(to: str, amount: int) -> dict[str, Any]:
    arguments = json.dumps({"to": to, "amount": amount})
    return {"id": f"call_{to}", "type": "function", "function": {"name": "send_money", "arguments": arguments}}


@contextmanager
def running_chat_model() -> Iterator[str]:
    """Serve the model and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Turn) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
