"""Restate's handler: `python handler.py PORT`, in the environment .venv-restate, without Sayso.

It waits for an awakeable and then runs the tool, which reports its start.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from typing import Any

import restate
import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

_STAMPS = os.environ["SAYSO_BENCH_STAMPS"]
_sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bench = restate.Service("bench")


@bench.handler()
async def ask(ctx: restate.Context, call: dict[str, Any]) -> None:
    """Wait for the decision, then run the tool."""
    name = call["name"]
    awakeable, decision = ctx.awakeable()
    _report(f"id:{name} {awakeable}")
    await decision
    await ctx.run_typed("refund", lambda: _report(f"{name} {time.perf_counter_ns() / 1_000_000}"))


def _report(text: str) -> None:
    _sender.sendto(text.encode(), _STAMPS)


async def _serve(port: int) -> None:
    app = restate.app([bench])
    server = Server(app, port=port, interface=Interfaces.ASGI, http=HTTPModes.http2, websockets=False)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    gc.collect()
    gc.freeze()
    await server.serve()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
