# One gate for people and for CI. `make demo` and `make test` are all a new machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test soak test-base test-browser docs figures check bench bench-check format clean
.DEFAULT_GOAL := test

# Exact versions from constraints.txt, also for the build tools (hence no build isolation).
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt hatchling editables
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/halfseen demo

# Tests start many processes, which share compiled bytecode.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# Fuzzed calls, damaged files, injected faults and killed processes at length: at most 20 minutes on two cores.
soak: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m robustness.soak

# What runs with the base dependencies alone, in an environment that has nothing else.
BASE       := .venv-base
BASE_READY := $(BASE)/.ready
$(BASE_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(BASE)
	$(BASE)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt hatchling editables
	$(BASE)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e .
	@touch $@

test-base: $(BASE_READY)
	$(BASE)/bin/python -W error tests/base_install.py

# The page of results and the site in a real browser. Debian's packages are installed where they are missing and it may be.
BROWSER_READY := $(VENV)/.browser-ready
$(BROWSER_READY): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[browser]'
	@touch $@

test-browser: $(BROWSER_READY) docs
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	  || { echo "needs chromium and chromedriver: apt-get install chromium chromium-driver"; exit 1; }
	HALFSEEN_BROWSER=required $(BIN)/python -m pytest tests/browser

# The site: every warning is an error, and every link in the built pages leads somewhere.
DOCS_READY := $(VENV)/.docs-ready
SITE       := docs/_build/html
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)
	@echo "open $(SITE)/index.html"

# Figures of the site from results/, where `halfseen reproduce` leaves them.
figures: $(READY)
	$(BIN)/python docs/make_figures.py results

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --doctest-modules src

# Other libraries go into an environment of their own, benchmarks/peers/.venv.
bench: $(READY)
	$(BIN)/halfseen bench

bench-check: $(READY)
	$(BIN)/halfseen bench --check

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf docs/_build docs/api/generated docs/gallery docs/programs
	rm -rf $(VENV) $(BASE) benchmarks/peers/.venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
