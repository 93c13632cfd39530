"""A model for Claude Code: a server that makes one scripted shell command after the other, then ends its turn."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class ScriptedModel(ThreadingHTTPServer):
    """A model's script, what its tools returned, and whether it may go on after the first command."""

    daemon_threads = True

    def __init__(self, commands: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Turn)
        self.commands = commands
        self.results: list[dict[str, Any]] = []
        self.may_go_on = Event()
        self.may_go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def texts(self) -> list[str]:
        """Return what the model read as the results of its calls."""
        return [json.dumps(result["content"]) for result in self.results]


class _Turn(BaseHTTPRequestHandler):
    server: ScriptedModel

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "count_tokens" in self.path:
            return self._send("application/json", json.dumps({"input_tokens": 1}))
        blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
        results = [block for block in blocks if block["type"] == "tool_result" and not is_interrupted(block)]
        if not any(tool.get("name") == "Bash" for tool in request.get("tools", [])):
            return self._send("text/event-stream", _write_turn(request["model"], None, 0))
        self.server.results = results
        if results:
            self.server.may_go_on.wait()
        command = self.server.commands[len(results)] if len(results) < len(self.server.commands) else None
        return self._send("text/event-stream", _write_turn(request["model"], command, len(blocks)))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def is_interrupted(result: dict[str, Any]) -> bool:
    """Whether Claude Code adds the result itself, to a call that its end has cut off."""
    return "interrupted" in str(result["content"])


def _write_turn(model: str, command: str | None, number: int) -> str:
    """Return the events of a turn that calls Bash, or that only says something."""
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "done"}
    if command is not None:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
        arguments = {"command": command, "description": f"Step {number}"}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    end = {"stop_reason": "end_turn" if command is None else "tool_use", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@contextmanager
def running_model(commands: Sequence[str]) -> Iterator[ScriptedModel]:
    """Serve a script."""
    with ScriptedModel(commands) as model:
        Thread(target=model.serve_forever, daemon=True).start()
        try:
            yield model
        finally:
            model.may_go_on.set()
            model.shutdown()
