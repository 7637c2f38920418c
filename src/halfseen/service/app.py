"""The routes: rank, reward, health, metrics, log and the dashboard."""

import asyncio
import gc
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.exceptions import HTTPException
from starlette.responses import Response

import halfseen
from halfseen import errors
from halfseen.agent.agent import Agent
from halfseen.agent.deadline import Deadline, Late
from halfseen.agent.logs import rows_after
from halfseen.latent.policy import LatentUcb
from halfseen.service.dashboard import Dashboard, page
from halfseen.service.guard import Guard, answer, logger
from halfseen.service.settings import SETTINGS, Settings, message_of
from halfseen.service.threads import Threads

T = TypeVar("T")
Name = Annotated[str, Field(min_length=1, max_length=200)]
Item = int | str


_VALUE = {"type": ["number", "boolean", "string", "null"]}
_VALUES = {"type": "object", "additionalProperties": _VALUE}
# The agent checks rows, and names the column that is wrong.
Row = Annotated[dict[str, Any], WithJsonSchema(_VALUES)]
Option = Annotated[Any, WithJsonSchema({"anyOf": [_VALUES, {"type": ["string", "integer"]}]})]

_GAUGES = {
    "decisions": "Decisions so far",
    "pending": "Decisions without a final reward",
    "forgotten": "Decisions forgotten because too many were pending",
    "late": "Rewards that came after their decision had expired",
    "lift": "Mean reward minus that of a uniform choice",
    "oldest_pending": "Age of the oldest pending decision in seconds",
    "events": "Number of the latest event",
    "storage_bytes": "Size of the storage",
}

_OUTAGE = "the storage cannot be used at present: try again"
_COMMITTING = 0.5  # seconds that a decision which is being stored has beyond the timeout
_LEAVING = 1.5  # seconds that a thread has to end when the service is stopped

_OF_AGENT = {
    *("id", "ignore", "categorical", "numeric", "explore", "uniform_share"),
    *("expire_after", "expire_reward", "max_pending"),
}


class RankRequest(BaseModel):
    """Options, of which some values may be missing, and what they share."""

    model_config = ConfigDict(extra="forbid")

    options: list[Option] = Field(
        min_length=1,
        description="One row per option, or ids alone; leave out what is not known.",
        examples=[[{"sku": "hat", "price": 3.5, "colour": "red"}, {"sku": "coat"}]],
    )
    context: Row | None = Field(
        None, description="What all options share, such as the visitor.", examples=[{"hour": 14}]
    )
    k: int = Field(1, ge=1, description="Number of places to fill with different items.")
    id: Name | None = Field(
        None, description="An id of your own: sent again, the same decision is returned."
    )


class Place(BaseModel):
    """An item, and its probability given the places before it."""

    item: Item = Field(examples=["coat"])
    probability: float = Field(examples=[0.975])


class RankAnswer(BaseModel):
    """A decision; its id is needed to report the outcome."""

    id: str = Field(examples=["0b3c9f1e5d7a42c8"])
    item: Item = Field(examples=["coat"])
    places: list[Place]
    ranking: list[Item] = Field(examples=[["coat", "hat"]])


class RewardRequest(BaseModel):
    """The outcome of a decision, or of one of its places."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The id of the decision.", examples=["0b3c9f1e5d7a42c8"])
    reward: float = Field(examples=[1.0])
    item: Item | None = Field(None, description="The item it is for; by default the first one.")
    final: bool = Field(True, description="False if more may come, which is added; needs a key.")
    key: Name | None = Field(None, description="Names this reward among others of the decision.")


class Accepted(BaseModel):
    """The reward is stored."""

    accepted: bool = True


class Refused(BaseModel):
    """What is wrong."""

    error: str


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refused} for status in statuses}


def open_agent(settings: Settings) -> Agent:
    """Open the agent that settings describe, or create it.

    One that was made with other settings keeps its own, unless they contradict what was asked for.
    """
    halfseen.warm_up(progress=False)  # so that no request waits for loops to be compiled
    where = settings.storage, settings.name, settings.durability
    asked = settings.model_dump(include=_OF_AGENT, exclude_unset=True)
    Agent(**asked)  # names a setting that is wrong
    new = settings.model_dump(include=_OF_AGENT)
    own = {"exploration": new.pop("explore"), "uniform_share": new.pop("uniform_share")}
    try:
        return Agent.open(*where, **new, policy=LatentUcb(**own, refit="background"))
    except errors.InvalidSettingError:
        return Agent.open(*where, **asked)


def app_from_environment() -> FastAPI:
    """Return the application of a worker, whose settings `serve` has left in the environment."""
    return create_app(Settings.model_validate_json(os.environ[SETTINGS]))


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its agent is open while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        agent = app.state.agent = open_agent(settings)
        gc.freeze()  # what is loaded now stays: to search it for garbage would take 0.1 s each time
        app.state.dashboard, app.state.threads = Dashboard(agent), Threads()
        app.state.works, ends = True, threading.Event()
        keeper = threading.Thread(target=keep, args=(app, settings.every, ends), daemon=True)
        keeper.start()
        yield
        ends.set()
        app.state.threads.close()
        await ended(keeper)
        closing = threading.Thread(target=close, args=(agent,), daemon=True)
        closing.start()
        await ended(closing)

    app = FastAPI(
        title="halfseen",
        version=halfseen.__version__,
        description="Chooses among options that are only partly known, and learns from rewards.",
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        responses=_refusals(401, 413, 422, 503),
        dependencies=[Depends(HTTPBearer(auto_error=False))],  # the guard has checked it
    )
    app.state.settings = settings
    app.add_middleware(Guard, settings=settings, is_full=lambda: app.state.threads.is_full)
    for kind in (errors.HalfseenError, OSError, MemoryError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, refused)
    app.post("/rank", summary="Choose among options", responses=_refusals(409))(rank)
    app.post("/reward", summary="Report a reward", responses=_refusals(404, 409))(reward)
    app.get("/live", summary="Tell whether this process answers")(live)
    app.get("/health", summary="Tell whether the service works; with the key, how it does")(health)
    app.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)(metrics)
    app.get("/log", summary="Decisions and rewards, one JSON object per line")(log)
    app.get("/dashboard.json", include_in_schema=False)(dashboard_data)
    app.get("/", include_in_schema=False)(dashboard)
    return app


async def ended(thread: threading.Thread) -> None:
    """Wait for a thread, but not for long: the process may end without it."""
    until = time.monotonic() + _LEAVING
    while thread.is_alive() and time.monotonic() < until:
        await asyncio.sleep(0.01)


def close(agent: Agent) -> None:
    """Close an agent; an error is logged, since the process ends in any case."""
    try:
        agent.close()
    except Exception:
        logger.exception("the agent could not be closed")


def keep(app: FastAPI, every: float, ends: threading.Event) -> None:
    """Let the agent do what is due, and note whether the storage works.

    A worker whose parent was killed ends as well: nobody could stop it.
    """
    parent = os.getppid()
    while not ends.wait(every):
        if os.getppid() != parent:
            signal.raise_signal(signal.SIGTERM)
            return
        try:
            app.state.agent.tick()
            app.state.works = True
        except Exception:  # the storage may be back later
            app.state.works = False
            if not ends.is_set():
                logger.exception("what was due could not be done")


async def in_time(result: asyncio.Future[T], deadline: Deadline) -> T:
    """Wait for the result of a call; when the request ends, cancel it, or wait for its COMMIT."""
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if not deadline.cancel():
            await asyncio.wait([result], timeout=_COMMITTING)
            if result.done():
                return result.result()
        result.cancel()
        raise


async def rank(asked: RankRequest, request: Request) -> RankAnswer:
    """Choose among options; nothing is known of values that are missing or null."""
    state = request.app.state
    most = state.settings.max_options
    if len(asked.options) > most:
        n = len(asked.options)
        raise HTTPException(422, f"at most {most} options, got {n} (setting max_options)")
    id = asked.id or secrets.token_hex(12)  # known before, for the case that no answer comes
    remedy = f'decision {id} may be stored: send the request with "id": "{id}" to get or make it'
    deadline = Deadline(state.settings.timeout)
    choose = state.threads.call(
        state.agent.choose_until, deadline, asked.options, asked.context, asked.k, id, True
    )
    try:
        made = await in_time(choose, deadline)
    except asyncio.CancelledError:
        if deadline.is_committed:
            request.scope["halfseen.remedy"] = remedy
        raise
    except Late:
        raise HTTPException(503, "nothing was decided in time: try again") from None
    except errors.StorageError as error:
        if not deadline.is_committed:
            raise
        logger.error("/rank: %s", error)
        raise HTTPException(503, f"the storage failed: {remedy}") from None
    pairs = zip(made.chosen, made.chosen_probabilities, strict=True)
    places = [Place(item=item, probability=share) for item, share in pairs]
    return RankAnswer(id=made.id, item=made.item, places=places, ranking=list(made.ranking))


async def reward(got: RewardRequest, request: Request) -> Accepted:
    """Store a reward; the same one again is accepted, and counts once."""
    value: Any = got.reward if got.item is None else {got.item: got.reward}
    state = request.app.state
    await state.threads.call(state.agent.learn, got.id, value, final=got.final, key=got.key)
    return Accepted()


async def live() -> dict[str, str]:
    """Return that this process answers, which needs neither the agent nor its storage."""
    return {"status": "ok"}


async def health(request: Request) -> dict[str, Any]:
    """Return what the agent knows about its traffic; without the key only whether it works."""
    state = request.app.state
    if request.scope["halfseen.has_key"]:
        found: dict[str, Any] = await state.threads.call(state.agent.health)
        return {"status": "ok"} | found
    if not state.works:  # at the latest look: what anybody may ask costs nothing
        raise HTTPException(503, _OUTAGE)
    return {"status": "ok"}


async def metrics(request: Request) -> Response:
    """Return counters of all workers, and what is the same for all of them."""
    registry = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    found = await request.app.state.threads.call(request.app.state.agent.health)
    registry.register(_Gauges(found | {"lift": found["lift"]["lift"]}))
    return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")


class _Gauges(Collector):
    """What is the same for all workers."""

    def __init__(self, health: dict[str, Any]) -> None:
        self.health = health

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one metric after the other."""
        for name, text in _GAUGES.items():
            if self.health[name] is not None:
                yield GaugeMetricFamily(f"halfseen_{name}", text, value=self.health[name])


async def log(
    request: Request,
    after: Annotated[int, Query(ge=0, description="The last number that you have.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Of decisions.")] = 1000,
) -> Response:
    """Return decisions with their probabilities and rewards, in order, as `agent.log()` does."""
    state = request.app.state
    found = await state.threads.call(rows_after, state.agent.reading(), after, limit)
    lines = (json.dumps(row, default=datetime.isoformat) + "\n" for row in found)
    return PlainTextResponse("".join(lines), media_type="application/x-ndjson")


async def dashboard_data(request: Request) -> dict[str, Any]:
    """Return what the dashboard shows."""
    found: dict[str, Any] = await request.app.state.threads.call(request.app.state.dashboard.data)
    return found


async def dashboard(request: Request) -> HTMLResponse:
    """Return the dashboard, which fetches its data."""
    return page(request.app.state.settings.name)


async def refused(request: Request, error: Exception) -> Response:
    """Return an error as JSON: what is wrong with a request, or that the storage does not work."""
    if isinstance(error, HTTPException):
        return answer(error.status_code, str(error.detail), dict(error.headers or {}))
    if isinstance(error, RequestValidationError):
        if isinstance(error.body, bytes):  # not read as JSON
            return answer(422, "send JSON with content-type: application/json")
        return answer(422, "; ".join(map(message_of, error.errors()[:5])))
    if isinstance(error, errors.AlreadyRewardedError | errors.ReusedIdError):
        return answer(409, str(error))
    if isinstance(error, errors.UnknownDecisionError):
        return answer(404, str(error))
    if isinstance(error, errors.InvalidInputError):
        return answer(422, str(error))
    logger.error("%s: %s", request.url.path, error)  # has the place of the storage
    return answer(503, _OUTAGE)
