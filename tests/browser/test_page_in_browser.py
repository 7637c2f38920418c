"""The page as a person meets it: small and large, light and dark, without a network."""

import json
import re
import time

import pytest

WIDE, NARROW = 1400, 390


@pytest.fixture
def page(driver, results):
    """Return a function that opens the page at a width, light or dark."""

    def opened(width=WIDE, dark=False):
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get_log("browser"), driver.get_log("performance")  # forget what was before
        driver.get((results / "index.html").as_uri())
        return driver

    return opened


def wait(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found


def find(driver, selector):
    from selenium.webdriver.common.by import By

    return driver.find_elements(By.CSS_SELECTOR, selector)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [NARROW, 768, WIDE])
def test_nothing_is_said_on_the_console_loaded_or_wider_than_the_window(page, width, dark):
    driver = page(width, dark)
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    assert driver.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = {
        entry["params"]["request"]["url"]
        for entry in asked
        if entry["method"] == "Network.requestWillBeSent"
    }
    assert urls, "requests are not recorded"
    assert not [url for url in urls if not url.startswith(("file:", "data:"))]


def test_the_network_is_blocked_and_errors_would_be_seen(page):
    driver = page()
    driver.execute_script("const image = new Image(); image.src = 'https://example.org/a.png'")
    wait(lambda: driver.get_log("browser"))


def test_dark_and_light_differ_and_texts_can_be_read(page):
    script = (
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    seen = {dark: page(WIDE, dark).execute_script(script) for dark in (False, True)}
    brightness = {
        dark: [sum(map(int, re.findall(r"\d+", color)[:3])) for color in colors]
        for dark, colors in seen.items()
    }
    assert brightness[False][0] - brightness[False][1] > 500
    assert brightness[True][1] - brightness[True][0] > 500
