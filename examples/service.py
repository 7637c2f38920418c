"""A web service that ranks options and learns their rewards; if it is killed, nothing is lost.

POST /rank   {"options": [{"id": "a", "price": 3.5}, {"id": "b"}], "context": {"country": "DE"}}
POST /reward {"id": "<id of the decision>", "reward": 1.0}
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import halfseen

Row = dict[str, bool | int | float | str | None]
DATA = Path(os.environ.get("DATA", "."))
agent = halfseen.Agent.open(DATA / "agent", DATA / "events.jsonl", id="id")


class Offer(BaseModel):
    options: list[Row]
    context: Row | None = None


class Reward(BaseModel):
    id: str
    reward: float


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    agent.save(DATA / "agent")  # a checkpoint, so that the next start is fast
    agent.close()


app = FastAPI(lifespan=lifespan)


@app.post("/rank")
def rank(offer: Offer) -> dict[str, object]:
    decision = agent.choose(offer.options, context=offer.context)
    return {"id": decision.id, "item": decision.item, "ranking": decision.ranking}


@app.post("/reward")
def learn(reward: Reward) -> None:
    agent.learn(reward.id, reward.reward)


app.get("/health")(agent.health)


@app.exception_handler(halfseen.HalfseenError)
def refused(request: Request, error: Exception) -> JSONResponse:
    unknown = isinstance(error, halfseen.UnknownDecisionError)  # or rewarded before
    return JSONResponse({"error": str(error)}, status_code=404 if unknown else 422)
