"""The dashboard of a real service, as a person meets it."""

import json
import random

import pytest

from browser.test_page_in_browser import NARROW, WIDE, find, wait
from service.serving import KEY, Client, server

HOSTILE = "<img src=x onerror=document.title='hit'>"
SECTIONS = ("reward", "traffic", "seen", "measure", "refits", "epochs", "decisions")


@pytest.fixture(scope="module")
def service(driver, tmp_path_factory):
    """Return the port of a service with a key; the browser has logged in to it."""
    storage = tmp_path_factory.mktemp("dashboard") / "shop.db"
    with server(storage, "--id", "sku", key=KEY, durability="crash") as (_, port):
        driver.get(f"http://anyone:{KEY.replace(' ', '%20')}@127.0.0.1:{port}/")
        wait(lambda: driver.execute_script("return document.documentElement.dataset.drawn"))
        yield port


def opened(driver, port, width):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    driver.get_log("browser"), driver.get_log("performance")  # forget what was before
    driver.get(f"http://127.0.0.1:{port}/")
    wait(lambda: driver.execute_script("return document.documentElement.dataset.drawn"))
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert driver.get_log("browser") == []


def shown(driver, selector):
    """Return the texts of what can be seen, all at once: the page changes by itself."""
    script = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".filter((each) => each.getClientRects().length).map((each) => each.innerText)"
    )
    return driver.execute_script(script, selector)


def send(port, n):
    """Send visitors who click on cheap things; half of the prices are hidden."""
    call, draw = Client(port, KEY), random.Random(n)
    for _ in range(n):
        prices = {"hat": 1.0, "coat": 5.0, HOSTILE: 3.0}
        options = [{"sku": item, "size": price % 2} for item, price in prices.items()]
        for option in options:
            if draw.random() < 0.5:
                option["price"] = prices[option["sku"]]
        made = call("/rank", {"options": options, "context": {"hour": draw.randrange(24)}})[1]
        clicked = float(draw.random() < 0.9 - 0.15 * prices[made["item"]])
        call("/reward", {"id": made["id"], "reward": clicked})


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_before_anything_is_learned_it_shows_what_half_seen_means(driver, service, width):
    opened(driver, service, width)
    assert len(find(driver, "#start .step svg")) == 4
    assert shown(driver, "h2") == ["Nothing has been learned yet"]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_shows_how_the_agent_does(driver, service, width):
    send(service, 150)
    opened(driver, service, width)
    health = Client(service, KEY)("/health")[1]
    wait(lambda: f"{health['decisions']}\ndecisions" in shown(driver, ".tiles li"))
    assert not find(driver, "#start")[0].is_displayed()
    for section in SECTIONS:
        assert shown(driver, f"#{section} *"), section
    assert len(find(driver, "#reward path")) == 4  # two curves and their bands
    assert shown(driver, "#seen dt") == ["size", "price", "hour (context)"]
    assert len(find(driver, ".decision")) == 6
    assert all("reward" in text for text in shown(driver, ".decision small"))


def test_it_follows_the_traffic_and_shows_names_as_they_are(driver, service):
    opened(driver, service, WIDE)
    before = shown(driver, ".tiles li")[2]
    send(service, 8)
    wait(lambda: shown(driver, ".tiles li")[2] != before)
    items = [json.loads(line) for line in Client(service, KEY)("/log?limit=9999")[1].splitlines()]
    assert any(each["item"] == HOSTILE for each in items)
    assert driver.title != "hit"
    assert not find(driver, "img")


def test_it_loads_nothing_from_elsewhere(driver, service):
    opened(driver, service, WIDE)
    messages = [json.loads(each["message"])["message"] for each in driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert sent
    for request in sent:
        assert request["request"]["url"].startswith(f"http://127.0.0.1:{service}/")
