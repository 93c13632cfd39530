"""A model for Claude Code: a server that makes scripted calls, some in each turn, then ends its turn."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Block = tuple[dict[str, Any], dict[str, Any]]
"""The begin of a block of a message, and what it holds."""

Call = str | dict[str, Any]
"""A shell command, or a call of a tool of the server `bank`: its `tool` and `args`."""

BANK = "mcp__bank__"
"""The begin of the names that Claude Code gives to the tools of that server."""


class ScriptedModel(ThreadingHTTPServer):
    """A model's script, what its tools returned, and whether it may go on after the first call."""

    daemon_threads = True

    def __init__(self, turns: Sequence[Call | Sequence[Call]]) -> None:
        super().__init__(("127.0.0.1", 0), _Turn)
        self.turns = [[turn] if isinstance(turn, str | dict) else turn for turn in turns]
        self.results: list[dict[str, Any]] = []
        self.may_go_on = Event()
        self.may_go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_turn(self, answered: int) -> Sequence[Call]:
        """Return the calls after those that have results."""
        for turn in self.turns:
            if answered <= 0:
                return turn
            answered -= len(turn)
        return ()

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
            return self._send("text/event-stream", _write_turn(request["model"], (), 0))
        self.server.results = results
        if results:
            self.server.may_go_on.wait()
        calls = self.server.next_turn(len(results))
        return self._send("text/event-stream", _write_turn(request["model"], calls, len(blocks)))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def is_interrupted(result: dict[str, Any]) -> bool:
    """Whether Claude Code adds the result itself, to a call that its end has cut off."""
    return "interrupted" in str(result["content"])


def _write_turn(model: str, calls: Sequence[Call], number: int) -> str:
    """Return the events of a turn that calls tools, or that only says something."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    says: Block = ({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"})
    blocks = [_write_call(call, f"{number}_{index}") for index, call in enumerate(calls)] or [says]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}}
    ]
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _write_call(call: Call, number: str) -> Block:
    shell = {"command": call, "description": f"Step {number}"}
    name, arguments = ("Bash", shell) if isinstance(call, str) else (f"{BANK}{call['tool']}", call["args"])
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
    return block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}


@contextmanager
def running_model(turns: Sequence[Call | Sequence[Call]]) -> Iterator[ScriptedModel]:
    """Serve a script."""
    with ScriptedModel(turns) as model:
        Thread(target=model.serve_forever, daemon=True).start()
        try:
            yield model
        finally:
            model.may_go_on.set()
            model.shutdown()
