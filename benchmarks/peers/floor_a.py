"""Floor A: a minimal durable approval service in Python, without RQ, rules, trail or sign-in.

FastAPI, one Lua transition per request, and a worker that pops, claims, runs the tool and finishes, 16 calls at once:
`python -m benchmarks.peers.floor_a service PORT URL` and `python -m benchmarks.peers.floor_a worker URL`.
"""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI, Request
from pydantic import BaseModel
from redis.asyncio import Redis

from benchmarks.clients import stamp

SUSPEND = """redis.call('HSET', KEYS[1], 'state', 'pending', 'doc', ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], KEYS[1]) return 1"""
_DECIDE = """if redis.call('HGET', KEYS[1], 'state') ~= 'pending' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'decided', 'by', ARGV[1]) redis.call('ZREM', KEYS[2], KEYS[1])
redis.call('RPUSH', KEYS[3], KEYS[1]) return 1"""
_CLAIM = """if redis.call('HGET', KEYS[1], 'state') ~= 'decided' then return false end
redis.call('HSET', KEYS[1], 'state', 'running') return redis.call('HGET', KEYS[1], 'doc')"""
_FINISH = "redis.call('HSET', KEYS[1], 'state', 'done') return 1"

_AT_ONCE = 16


class Call(BaseModel):
    """A suspended call."""

    id: str
    args: dict[str, Any]


@asynccontextmanager
async def _connected(app: FastAPI) -> AsyncIterator[None]:
    redis = Redis.from_url(app.state.url)
    app.state.suspend, app.state.decide = redis.register_script(SUSPEND), redis.register_script(_DECIDE)
    gc.collect()
    gc.freeze()
    yield
    await redis.aclose()


app = FastAPI(lifespan=_connected)


@app.post("/suspend")
async def suspend(call: Call, request: Request) -> dict[str, str]:
    """Suspend a call."""
    await request.app.state.suspend(keys=[f"p:{call.id}", "deadlines"], args=[call.model_dump_json(), 1])
    return {"id": call.id}


@app.post("/decide/{call_id}")
async def decide(call_id: str, request: Request) -> dict[str, int]:
    """Approve a suspended call."""
    won = await request.app.state.decide(keys=[f"p:{call_id}", "deadlines", "ready"], args=["ada"])
    return {"won": won}


async def _work(url: str) -> None:
    redis = Redis.from_url(url, socket_timeout=None)
    gc.collect()
    gc.freeze()
    await asyncio.gather(*(_follow(redis) for _ in range(_AT_ONCE)))


async def _follow(redis: Redis) -> None:
    claim, finish = redis.register_script(_CLAIM), redis.register_script(_FINISH)
    while True:
        popped: Any = await redis.blpop(["ready"])
        doc = await claim(keys=[popped[1]])
        if doc:
            stamp(Call.model_validate_json(doc).id)
            await finish(keys=[popped[1]])


if __name__ == "__main__":
    if sys.argv[1] == "service":
        app.state.url = sys.argv[3]
        uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, loop="uvloop")
    else:
        uvloop.run(_work(sys.argv[2]))
