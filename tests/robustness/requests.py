"""Requests to a real server with two workers, twenty at a time, one of which is killed in between.

Alone, with the times that requests take:

    PYTHONPATH=tests python -m robustness.requests
"""

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path

from service.serving import Client, server, workers_of

AT_ONCE, PATIENCE = 20, 30.0
ITEMS = [{"sku": f"item-{n}", "price": n % 7, "size": n % 3 or None} for n in range(10)]


class Visitors(threading.Thread):
    """Sends requests, each until it is answered; a reward has an id and counts once."""

    def __init__(self, port, n, seed):
        super().__init__()
        self.port, self.n, self.draw = port, n, random.Random(seed)
        self.times, self.acknowledged, self.failures = [], [], []

    def run(self):
        client = Client(self.port)
        for number in range(self.n // 2):
            id = f"{self.draw.getrandbits(64)}-{number}"
            options = self.draw.sample(ITEMS, 5)
            client, made = self.sent(client, "/rank", {"options": options, "id": id})
            if made is not None:
                answer = {"id": made["id"], "reward": float(self.draw.random() < 0.3)}
                client, done = self.sent(client, "/reward", answer)
                self.acknowledged += [] if done is None else [id]

    def sent(self, client, path, body):
        """Return a client and the answer; None if it is an error."""
        end = time.monotonic() + PATIENCE
        while True:
            began = time.perf_counter()
            try:
                status, answer = client(path, body)
                break
            except (OSError, HTTPException) as error:  # its worker was killed
                if time.monotonic() > end:
                    self.failures.append(f"{path}: no answer for {PATIENCE:g} s: {error!r}")
                    return client, None
                client = Client(self.port)
        self.times.append(time.perf_counter() - began)
        if status != 200:
            self.failures.append(f"{path}: {status} {answer}")
            return client, None
        return client, answer


def rewarded(port):
    """Return the ids of all decisions whose reward is in the log."""
    found, last = set(), 0
    while lines := Client(port)(f"/log?after={last}&limit=10000")[1].splitlines():
        rows = [json.loads(line) for line in lines]
        found |= {row["id"] for row in rows if row["status"] == "rewarded"}
        last = rows[-1]["number"]
    return found


def measure(n, seed, kill=True):
    """Return the times of n requests, and what failed."""
    with tempfile.TemporaryDirectory() as folder:
        more = ("--id", "sku", "--workers", "2")
        with server(Path(folder) / "shop.db", *more, durability="crash") as (process, port):
            crowd = [Visitors(port, n // AT_ONCE, seed + at) for at in range(AT_ONCE)]
            for each in crowd:
                each.start()
            while kill and sum(len(each.times) for each in crowd) < n // 3:
                time.sleep(0.1)
            if kill:
                os.kill(workers_of(process)[0], signal.SIGKILL)
            for each in crowd:
                each.join()
            lost = {id for each in crowd for id in each.acknowledged} - rewarded(port)
    failures = [failure for each in crowd for failure in each.failures]
    return [t for each in crowd for t in each.times], [*failures, *(f"lost {id}" for id in lost)]


def run(n, seed):
    times, failures = measure(n, seed)
    return len(times), failures


if __name__ == "__main__":
    for kill in (False, True):
        start = time.monotonic()
        found, failed = measure(int(sys.argv[1]) if sys.argv[1:] else 20_000, 1, kill)
        taken, found = time.monotonic() - start, sorted(found)
        half, most = (1e3 * found[int(share * len(found))] for share in (0.5, 0.99))
        print(
            f"{len(found)} requests in {taken:.0f} s, {'one worker killed, ' if kill else ''}"
            f"median {half:.1f} ms, 99 % {most:.1f} ms, {len(failed)} failed {failed[:3]}"
        )
        if failed:
            sys.exit(1)
