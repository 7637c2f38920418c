"""A web service that ranks options and learns from clicks; if it is killed, nothing is lost.

POST /rank   {"options": [{"id": "a", "price": 3.5}, {"id": "b"}], "context": {"country": "DE"}}
POST /reward {"id": "<id of the decision>", "reward": 1.0}; none within WAIT seconds counts as 0
"""

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.responses import JSONResponse

import halfseen

Row = dict[str, bool | int | float | str | None]
DATA = Path(os.environ.get("DATA", "."))
WAIT, EVERY = float(os.environ.get("WAIT", "1800")), float(os.environ.get("EVERY", "60"))
agent = halfseen.Agent.open(DATA / "agent", DATA / "events.jsonl", id="id", uniform_share=0.05)
ends = threading.Event()


def expire_and_save() -> None:
    while not ends.wait(EVERY):
        agent.expire(before=timedelta(seconds=WAIT), reward=0.0)
        agent.save(DATA / "agent")  # a checkpoint, so that the next start is fast


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    threading.Thread(target=expire_and_save, daemon=True).start()
    yield
    ends.set()
    agent.save(DATA / "agent")


app = FastAPI(lifespan=lifespan)
app.get("/health")(agent.health)


@app.post("/rank")
def rank(options: list[Row], context: Annotated[Row | None, Body()] = None) -> dict[str, Any]:
    decision = agent.choose(options, context=context)
    return {"id": decision.id, "item": decision.item, "ranking": decision.ranking}


@app.post("/reward")
def learn(id: Annotated[str, Body()], reward: Annotated[float, Body()]) -> None:
    agent.learn(id, reward)


@app.exception_handler(halfseen.HalfseenError)
def refused(request: Request, error: Exception) -> JSONResponse:
    unknown = isinstance(error, halfseen.UnknownDecisionError)  # or rewarded before
    return JSONResponse({"error": str(error)}, status_code=404 if unknown else 422)
