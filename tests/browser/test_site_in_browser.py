"""The site as a reader meets it: without a network, on a desk and on a phone, light and dark."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
PAGES = {
    "index.html": "halfseen",
    "choosing-a-policy.html": "Choosing a policy",
    "from-personalizer.html": "From Azure Personalizer",
    "figures.html": "Figures",
    "examples.html": "Examples",
    "gallery/drift.html": "Drift",
    "api/generated/halfseen.LatentUcb.html": "LatentUcb",
}
WIDE, NARROW = 1400, 390


@pytest.fixture
def reader(driver):
    """Return a function that opens a page of the site at a width, light or dark."""
    if not (SITE / "index.html").exists():
        pytest.fail("the site is not built: run `make docs`")

    def opened(page, width=WIDE, dark=False):
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get_log("browser"), driver.get_log("performance")  # forget what was before
        path, _, rest = page.partition("?")
        driver.get((SITE / path).as_uri() + (f"?{rest}" if rest else ""))
        return driver

    return opened


def asked_for(driver):
    """Return the addresses that the page has asked for."""
    messages = (json.loads(row["message"])["message"] for row in driver.get_log("performance"))
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_needs_no_network_and_has_no_errors(reader, page):
    driver = reader(page)
    assert (
        driver.execute_script("return document.querySelector('h1').firstChild.data") == PAGES[page]
    )
    assert {urlsplit(url).scheme for url in asked_for(driver)} <= {"file", "data", "blob"}
    assert [row for row in driver.get_log("browser") if row["level"] == "SEVERE"] == []
    broken = (
        "return [...document.images].filter((each) => each.complete && !each.naturalWidth).length"
    )
    assert driver.execute_script(broken) == 0


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_page_does_not_scroll_sideways(reader, page, width):
    driver = reader(page, width)
    driver.execute_script("window.scrollTo(10000, 0)")
    assert driver.execute_script("return window.scrollX") == 0
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_tree_of_policies_can_be_read_in_the_dark(reader):
    script = """
      const colour = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
      const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number)
        .reduce((sum, each) => sum + each, 0) / 765;
      return ['color', 'backgroundColor'].map((each) => light(colour('.policy-tree b', each)));
    """
    text, box = reader("choosing-a-policy.html", dark=True).execute_script(script)
    assert text - box > 0.5
    text, box = reader("choosing-a-policy.html").execute_script(script)
    assert box - text > 0.5


def test_search_finds_a_public_name_offline(reader):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    driver = reader("search.html?q=LatentUcb")
    results = (By.CSS_SELECTOR, "#search-results li a")
    WebDriverWait(driver, 20).until(lambda browser: browser.find_elements(*results))
    found = [link.get_attribute("href") for link in driver.find_elements(*results)]
    assert any("halfseen.LatentUcb.html" in address for address in found)
