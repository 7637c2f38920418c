# One gate for people and for CI. `make demo` and `make test` are all a new machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

PIP    := -m pip --disable-pip-version-check install -q
LOCKED := $(PIP) --require-hashes -r
ITSELF := $(PIP) --no-deps --no-build-isolation -e .

.PHONY: demo test coverage soak test-base test-browser test-cluster test-postgres docs figures gallery check bench bench-against format clean
.PHONY: audit dist test-dist lock licences
.DEFAULT_GOAL := test

# Exact versions and hashes from locks/, also of the build tools (hence no build isolation).
$(READY): pyproject.toml locks/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) locks/dev.txt
	$(BIN)/python $(ITSELF)
	@touch $@

demo: $(READY)
	$(BIN)/halfseen reproduce synthetic

# Tests start many processes, which share compiled bytecode.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# Lines of the package that tests run, without a threshold. Compiled loops do not count as run.
coverage: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal --cov=halfseen --cov-report=term:skip-covered

# Fuzzed calls, damaged files, injected faults and killed processes at length: at most an hour on two cores.
soak: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m robustness.soak

# What runs with the base dependencies alone, in an environment that has nothing else.
BASE       := .venv-base
BASE_READY := $(BASE)/.ready
$(BASE_READY): pyproject.toml locks/base.txt
	$(PYTHON) -m venv --clear $(BASE)
	$(BASE)/bin/python $(LOCKED) locks/base.txt
	$(BASE)/bin/python $(ITSELF)
	@touch $@

test-base: $(BASE_READY)
	$(BASE)/bin/python -W error tests/base_install.py

# Agents on a real PostgreSQL server. Debian's package is installed where it is missing and it may be.
test-postgres: $(READY)
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq postgresql >/dev/null; } \
	  || { echo "needs PostgreSQL: apt-get install postgresql"; exit 1; }
	HALFSEEN_POSTGRES=required $(BIN)/python -m pytest tests/agent -k "postgres or server"

# Studies and tables on a real Dask cluster: a scheduler and two workers in processes of their own.
test-cluster: $(READY)
	OMP_NUM_THREADS=1 HALFSEEN_CLUSTER=required $(BIN)/python -m pytest tests/simulation/test_cluster.py

# The page of results and the site in a real browser. Debian's packages are installed where they are missing and it may be.
BROWSER_READY := $(VENV)/.browser-ready
$(BROWSER_READY): $(READY) locks/browser.txt
	$(BIN)/python $(LOCKED) locks/browser.txt
	@touch $@

test-browser: $(BROWSER_READY) docs
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	  || { echo "needs chromium and chromedriver: apt-get install chromium chromium-driver"; exit 1; }
	HALFSEEN_BROWSER=required $(BIN)/python -m pytest tests/browser

# The site: every warning is an error, and every link in the built pages leads somewhere.
DOCS_READY := $(VENV)/.docs-ready
SITE       := docs/_build/html
$(DOCS_READY): $(READY) locks/docs.txt
	$(BIN)/python $(LOCKED) locks/docs.txt
	@touch $@

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)
	@echo "open $(SITE)/index.html"

# Figures of the site from results/, where `halfseen reproduce` leaves them.
figures: $(READY)
	$(BIN)/python docs/make_figures.py results

# Figures and outputs of examples that have changed, at full size; some minutes.
gallery: $(READY)
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python docs/_ext/gallery.py

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --doctest-modules src

# Known vulnerabilities in the versions of locks/; needs a network.
audit: $(READY)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(PIP) pip-audit
	.venv-audit/bin/pip-audit --disable-pip --require-hashes -r locks/dev.txt

# Other libraries go into an environment of their own, benchmarks/peers/.venv.
bench: $(READY)
	$(BIN)/python -m benchmarks

# What the working tree made slower since a commit: `make bench-against REV=main OPTIONS=--quick`.
bench-against: $(READY)
	$(BIN)/python -m benchmarks.against $(REV) $(OPTIONS)

# A wheel and a source distribution, both from the working tree.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# Both in fresh environments, with each Python that is found. PYTHONS=3.12 takes one, PYTHONS=this that of .venv.
test-dist: dist
	$(BIN)/python tools/test_dist.py $(PYTHONS)

# Keeps versions that still fit pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest ones.
# Files of extras agree with locks/dev.txt and with each other.
LOCK_EXTRAS := browser docs
LOCK_ENV    := .venv-lock
UV_COMPILE  := $(LOCK_ENV)/bin/uv pip compile -q pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-annotate --custom-compile-command "make lock" $(UPGRADE)
lock:
	$(PYTHON) -m venv $(LOCK_ENV)
	$(LOCK_ENV)/bin/python $(PIP) uv
	$(UV_COMPILE) --group build --extra dev -o locks/dev.txt
	$(UV_COMPILE) --group build -c locks/dev.txt -o locks/base.txt
	$(UV_COMPILE) --extra service --extra postgres -c locks/dev.txt -o locks/service.txt
	known="-c locks/dev.txt"; for extra in $(LOCK_EXTRAS); do \
	  $(UV_COMPILE) --extra $$extra $$known -o locks/$$extra.txt || exit 1; \
	  known="$$known -c locks/$$extra.txt"; done

licences: $(READY)
	@$(BIN)/python tools/licences.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf docs/_build docs/api/generated docs/gallery
	rm -rf $(VENV) $(BASE) $(LOCK_ENV) .venv-audit dist benchmarks/peers/.venv .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
