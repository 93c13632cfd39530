"""A collector of OpenTelemetry traces on this machine (OTLP/HTTP), with its own way of answering."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """What came in. With `status` it answers so, and with `floods` it sends a body without an end."""

    url: str
    status: int = 200
    floods: bool = False
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Any]:
        """Return all spans that came, each once: a repeated act has the same id."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        parts = (part for sent in requests for resource in sent.resource_spans for part in resource.scope_spans)
        return list({span.span_id: span for part in parts for span in part.spans}.values())

    def names(self) -> set[str]:
        """Return the names of the spans."""
        return {span.name for span in self.spans()}


def attributes_of(span: Any) -> dict[str, object]:
    """Return the attributes of a span."""
    return {fact.key: getattr(fact.value, fact.value.WhichOneof("value")) for fact in span.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a collector in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(collector.status)
            self.end_headers()
            try:
                while collector.floods:
                    self.wfile.write(b"x" * 65_536)
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hanging() -> Iterator[str]:
    """Yield the address of a collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
