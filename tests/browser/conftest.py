"""A real browser without a network, and a page of real results."""

import os
import shutil

import pytest

REQUIRED = os.environ.get("HALFSEEN_BROWSER") == "required"  # set by `make test-browser`
STUDIES = ("synthetic", "rank-selection", "theory")


def missing():
    """Return why there can be no browser, None if there can."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed: `make test-browser` installs it"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: `make test-browser` installs it"
    return None


@pytest.fixture(scope="session")
def driver():
    reason = missing()
    if reason is not None:
        if REQUIRED:
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (
        "--headless=new",
        "--no-sandbox",  # CI is root in a container
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no network
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def results(driver, tmp_path_factory):
    """Return a folder with the results of three studies, run small, and their page."""
    from typer.testing import CliRunner

    from halfseen.cli import app

    home = tmp_path_factory.mktemp("results")
    for name in STUDIES:
        small = ["--scale", "smoke", "--jobs", "1", "--out", str(home / name)]
        told = CliRunner().invoke(app, ["reproduce", name, *small])
        assert told.exit_code == 0, told.output
    told = CliRunner().invoke(app, ["page", str(home)])
    assert told.exit_code == 0, told.output
    return home
