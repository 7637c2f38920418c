"""The page as a person meets it: hover, click, small and large, light and dark, on paper."""

import base64
import csv
import gzip
import json
import re
import time

import pytest

CHARTS = ".charts[data-study='synthetic']"
WIDE, NARROW = 1400, 390


@pytest.fixture
def page(driver, results):
    """Return a function that opens the page at a width, light or dark, and waits for its charts."""

    def opened(width=WIDE, dark=False):
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get_log("browser"), driver.get_log("performance")  # forget what was before
        driver.get((results / "index.html").as_uri())
        wait(lambda: driver.execute_script("return document.documentElement.dataset.drawn"))
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


def click(driver, selector):
    (element,) = find(driver, selector)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()
    return element


def drawn(driver, chart):
    """Return the lines of a chart as the browser has them, in order."""
    paths = find(driver, f"{CHARTS} .plot.{chart} .scatterlayer .trace path.js-line")
    return [path.get_attribute("d") for path in paths]


def hover(driver, x, y):
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})


def tooltip(driver, chart):
    """Return the text of the tooltip on a chart, empty where there is none."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].map((line) => line.textContent)"
        ".join(' ')"
    )
    return driver.execute_script(
        script, f"{CHARTS} .plot.{chart} .hoverlayer .hovertext tspan.line"
    )


def told(text):
    """Return label, place, mean, error and n of a tooltip."""
    text = text.replace("−", "-")
    found = re.fullmatch(r"(.*) (?:round|p =) (\S+) regret (\S+) ± (\S+) n = (\d+)", text)
    assert found, text
    return found.groups()


def rows_of(file):
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt") as stream:
        return list(csv.DictReader(stream))


def assert_equal(row, mean, error, n):
    """Check displayed numbers against a row: equal in all digits that are displayed."""
    assert float(mean) == float(f"{float(row['mean_regret']):.4g}")
    assert float(error) == float(f"{float(row['se_regret']):.3g}")
    assert n == row["n"]


def labels(driver):
    return {
        button.text: button.get_attribute("data-method")
        for button in find(driver, f"{CHARTS} .legend button[data-method]")
    }


def test_a_tooltip_of_the_sweep_is_the_summary(page, results):
    driver = page()
    keys, summary = labels(driver), rows_of(results / "synthetic" / "summary.csv")
    points = find(driver, f"{CHARTS} .plot.final .points path.point")
    assert points
    seen = set()
    for point in points:
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
        place = driver.execute_script("return arguments[0].getBoundingClientRect()", point)
        hover(driver, place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        text = wait(lambda: tooltip(driver, "final"))
        label, p, mean, error, n = told(text)
        (row,) = (r for r in summary if r["method"] == keys[label] and float(r["p"]) == float(p))
        assert_equal(row, mean, error, n)
        seen.add((label, p))
        hover(driver, 1, 1)
        wait(lambda: not tooltip(driver, "final"))
    assert len(seen) > 1


def test_a_tooltip_over_time_is_the_trajectory(page, results):
    driver = page()
    keys = labels(driver)
    trajectories = rows_of(results / "synthetic" / "trajectories.csv.gz")
    (pressed,) = find(driver, f"{CHARTS} [data-choice='p'] button[aria-pressed='true']")
    p = float(pressed.text)
    (plot,) = find(driver, f"{CHARTS} .plot.over-time")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    line = find(driver, f"{CHARTS} .plot.over-time .scatterlayer .trace path.js-line")[-1]
    x, y = driver.execute_script(
        "const [line] = arguments; const at = line.getPointAtLength(line.getTotalLength() * .6);"
        "const to = at.matrixTransform(line.getScreenCTM()); return [to.x, to.y]",
        line,
    )
    hover(driver, x, y)
    label, at, mean, error, n = told(wait(lambda: tooltip(driver, "over-time")))
    (row,) = (
        r
        for r in trajectories
        if r["method"] == keys[label] and float(r["p"]) == p and r["round"] == at
    )
    assert_equal(row, mean, error, n)


def test_a_click_on_a_legend_entry_takes_a_method_out_and_brings_it_back(page):
    driver = page()
    before = {chart: drawn(driver, chart) for chart in ("over-time", "final")}
    entry = f"{CHARTS} .legend button[data-method='tofu']"
    button = click(driver, entry)
    assert button.get_attribute("aria-pressed") == "false"
    assert len(drawn(driver, "final")) == len(before["final"]) - 1
    assert len(drawn(driver, "over-time")) < len(before["over-time"])
    click(driver, entry)
    assert button.get_attribute("aria-pressed") == "true"
    assert {chart: len(drawn(driver, chart)) for chart in before} == {
        chart: len(lines) for chart, lines in before.items()
    }


def test_all_and_none(page):
    driver = page()
    click(driver, f"{CHARTS} .legend button.every:last-child")
    assert drawn(driver, "final") == []
    click(driver, f"{CHARTS} .legend button.every:nth-last-child(2)")
    n_methods = len(labels(driver))
    assert len(drawn(driver, "final")) == n_methods


def test_a_click_on_p_draws_another_one(page):
    driver = page()
    before = drawn(driver, "over-time")
    (caption,) = find(driver, f"{CHARTS} .plots figure:first-child figcaption")
    title = caption.text
    other = find(driver, f"{CHARTS} [data-choice='p'] button[aria-pressed='false']")[0].text
    click(driver, f"{CHARTS} [data-choice='p'] button[data-value='{other}']")
    assert drawn(driver, "over-time") != before
    assert caption.text != title
    assert caption.text.endswith(f"p = {other}")
    (pressed,) = find(driver, f"{CHARTS} [data-choice='p'] button[aria-pressed='true']")
    assert pressed.text == other


@pytest.mark.parametrize(("choice", "axis"), [("y", "yaxis"), ("x", "xaxis")])
def test_axes_become_logarithmic_and_back(page, choice, axis):
    driver = page()
    kind = f'return document.querySelector("{CHARTS} .plot.over-time").layout.{axis}.type'
    before = drawn(driver, "over-time")
    click(driver, f"{CHARTS} [data-choice='{choice}'] button[data-value='true']")
    assert driver.execute_script(kind) == "log"
    assert drawn(driver, "over-time") != before
    click(driver, f"{CHARTS} [data-choice='{choice}'] button[data-value='false']")
    assert driver.execute_script(kind) == "linear"
    assert drawn(driver, "over-time") == before


def test_another_setting_is_drawn_and_bars_stand_over_all(page):
    driver = page()
    charts = ".charts[data-study='rank-selection']"
    path = f"{charts} .plot.over-time .scatterlayer .trace path.js-line"
    before = [line.get_attribute("d") for line in find(driver, path)]
    assert find(driver, f"{charts} .plot.final .barlayer .point")
    click(driver, f"{charts} select option:last-child")
    assert [line.get_attribute("d") for line in find(driver, path)] != before


def test_a_study_shows_its_figures_when_they_are_opened(page):
    driver = page()
    pictures = find(driver, "#theory .drawn img")
    assert pictures
    script = "document.querySelectorAll('#theory details').forEach((each) => { each.open = true })"
    driver.execute_script(script)
    for picture in pictures:
        driver.execute_script("arguments[0].scrollIntoView()", picture)
        wait(lambda one=picture: one.get_property("naturalWidth"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [NARROW, 768, WIDE])
def test_nothing_is_said_on_the_console_loaded_or_wider_than_the_window(page, width, dark):
    driver = page(width, dark)
    click(driver, f"{CHARTS} [data-choice='y'] button[data-value='true']")
    click(driver, f"{CHARTS} .legend button[data-method='tofu']")
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


def test_charts_follow_the_colours_of_the_system_while_the_page_is_open(page):
    driver = page(WIDE, False)
    script = "return document.querySelector(arguments[0]).style.fill"
    ink = driver.execute_script(script, f"{CHARTS} .plot .xtick text")
    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    wait(lambda: driver.execute_script(script, f"{CHARTS} .plot .xtick text") != ink)


def test_a_keyboard_is_enough(page):
    from selenium.webdriver.common.keys import Keys

    driver = page()
    (button,) = find(driver, f"{CHARTS} .legend button[data-method='tofu']")
    n_lines = len(drawn(driver, "final"))
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    assert len(drawn(driver, "final")) == n_lines - 1
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


@pytest.mark.parametrize("dark", [False, True])
def test_it_prints_with_charts_and_without_controls(page, dark, tmp_path):
    driver = page(WIDE, dark)
    script = (
        "addEventListener('beforeprint', () => { const seen = (what) => "
        "document.querySelector(what).getBoundingClientRect(); window.printed = "
        f'[seen("{CHARTS} .plot.over-time svg").width, '
        f'document.querySelector("{CHARTS} .plot .xtick text").style.fill]; }})'
    )
    driver.execute_script(script)
    printed = driver.execute_cdp_cmd(
        "Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True}
    )
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    width, ink = driver.execute_script("return window.printed")
    assert 200 < width < 360  # two beside each other on the paper
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 200  # dark ink on white paper
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    (controls,) = find(driver, f"{CHARTS} .controls")
    (plot,) = find(driver, f"{CHARTS} .plot.over-time")
    assert not controls.is_displayed()
    assert plot.is_displayed()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
