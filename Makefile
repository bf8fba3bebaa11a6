# `make` alone teaches. Every path here is relative, so that the clone may stand anywhere.
# What needs more than a line is in tools/; the order of things is here.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHON

python := .venv/bin/python
locked := .venv/.locked
installed := .venv/.installed
kernel_sources := $(wildcard src/gantrymq/kernel/*.pyx src/gantrymq/kernel/*.pxd src/gantrymq/kernel/native/*.pxi)

SECONDS ?= 600
TARGETS ?= frame header body properties batch record broker namesrv replication tls metrics dashboard sql92 settings accounts users declared config store arguments
ENGINE ?= auto

.PHONY: help setup test run lint format types bench bench-compare bench-replication overload soak pipeline-demo fuzz flips simulate chaos chaos-failover coverage conf blocking lock release-checks clean system-packages

help: ## show this text
	@echo "gantrymq: RocketMQ in one pip install, with your topics as Spark tables."
	@echo
	@echo "Needed: Python 3.11 or later, make, and a C compiler for the fast kernel."
	@echo "Everything else goes into .venv in this folder. Begin with:  make test"
	@echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'
	@echo
	@echo "Settings:"
	@echo "  PYTHON=python3.12              the Python that .venv is made with (after: make clean)"
	@echo "  ARGS='tests/unit -k frame'     what make test hands to pytest, and make run to the server"
	@echo "  SECONDS=60 TARGETS=frame       how long make fuzz takes for each target, and which"
	@echo "  SECONDS=120 SEED=7             how long make chaos breaks things in each setting, and which ones"
	@echo "  HOURS=0.5                      how long make soak takes"
	@echo "  GANTRYMQ_SYSTEM_PACKAGES=0     make test installs no system packages, even as root"
	@echo "  CI=true                        a test that cannot run here is a failure, not a skip"

setup: $(installed) ## make .venv and install gantrymq into it, with its compiled kernel
	@.venv/bin/gantrymq --version

test: system-packages $(installed) ## everything: set up, ruff, mypy, all tests, and a summary
	@tools/check.sh $(ARGS)

run: $(installed) ## start the server: name server and broker, data in ./gantrymq-data; ARGS='--port 20911'
	@exec .venv/bin/gantrymq server $(ARGS)

lint: $(locked) ## ruff: rules and formatting
	@$(python) -m ruff check
	@$(python) -m ruff format --check

format: $(locked) ## ruff: format, and mend what can be mended safely
	@$(python) -m ruff format
	@$(python) -m ruff check --fix

types: $(installed) ## mypy --strict
	@$(python) -m mypy

bench: $(installed) ## kernel and store, measured, as JSON; SCALE=0.01 is small and quick
	@$(python) -m bench.micro
	@$(python) -m bench.store --scale $(or $(SCALE),1)

bench-compare: $(installed) ## the broker beside Apache RocketMQ 5.5.0, as a table; SCALE=0.02 is quick
	@$(python) -m bench.compare --scale $(or $(SCALE),1) $(ARGS)

pipeline-demo: $(installed) ## the tutorial of docs/pipeline.md, run: a million orders; ARGS='--orders 20000'
	@$(python) tools/pipeline_demo.py $(ARGS)

fuzz: $(installed) .venv/.fuzz ## bad input for every parser, SECONDS=600 for each of TARGETS
	@status=0; for target in $(TARGETS); do \
	    $(python) -m fuzz.run $$target --seconds $(SECONDS) --engine $(ENGINE) || status=1; \
	done; exit $$status

flips: $(installed) ## every byte of a small store changed, one at a time; ARGS='--only commitlog'
	@$(python) tests/security/every_byte.py $(ARGS)

simulate: $(installed) ## a broker group under SEEDS=100000 seeds of trouble, from FIRST=0 on
	@$(python) tests/simulation/many_seeds.py --first $(or $(FIRST),0) --seeds $(or $(SEEDS),100000)

chaos: $(installed) ## random faults under real servers and clients: SECONDS=60 SEED=1 SEEDS=1 SETTINGS=all FAULTS=all
	@$(python) tests/chaos/run.py --seconds $(if $(filter file,$(origin SECONDS)),60,$(SECONDS)) \
	    --seed $(or $(SEED),1) --seeds $(or $(SEEDS),1) --settings $(or $(SETTINGS),all) --faults $(or $(FAULTS),all) $(ARGS)

chaos-failover: $(installed) ## kill -9 the master of a group with failover, ROUNDS=50 times; WHAT=partition, promotion or consumer
	@$(python) tests/crash/failover_rounds.py --rounds $(or $(ROUNDS),50) --what $(or $(WHAT),kill)

bench-replication: $(installed) ## SYNC_MASTER with a slave beside Apache RocketMQ 5.5.0, and our slave's lag
	@$(python) -m bench.replication $(ARGS)

overload: $(installed) ## three times what a broker takes in, over 500 connections; ARGS='--seconds 5'
	@$(python) -m bench.overload $(ARGS)

soak: $(installed) ## HOURS=4 at 70 % of the capacity with rolling restarts: does anything grow? build/soak has a picture
	@$(python) -m bench.soak --hours $(or $(HOURS),4) $(ARGS)

coverage: $(installed) ## branch coverage; model and wire must have 95 %
	@rm -f .coverage .coverage.*
	@status=0; $(python) -m coverage run -m pytest -q -p no:xdist || status=$$?; \
	$(python) -m coverage combine -q && $(python) -m coverage report && \
	echo "of model and wire, in per cent:" && $(python) -m coverage report --format=total \
	    --include='src/gantrymq/model/*,src/gantrymq/wire/*' --fail-under=95 && exit $$status

conf: $(installed) ## write conf/*.conf anew from the settings in the sources
	@$(python) tools/example_settings.py

blocking: $(locked) ## write src/gantrymq/blocking/ anew from the asyncio clients
	@$(python) tools/make_blocking.py

lock: build/uv/bin/uv ## pin what .venv holds; UPGRADE=1 takes newer versions
	@build/uv/bin/uv pip compile -q pyproject.toml --group dev $(if $(UPGRADE),--upgrade) \
	    --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock
	@build/uv/bin/uv pip compile -q --group fuzz $(if $(UPGRADE),--upgrade) \
	    --universal --python-version 3.11 --generate-hashes --no-header -o fuzz/requirements.lock
	@build/uv/bin/uv pip compile -q pyproject.toml --all-extras --constraint requirements.lock \
	    --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o release/requirements.lock

release-checks: $(installed) ## before a release: what it is made of (build/gantrymq.cdx.json), and whether weaknesses of that are known
	@$(python) tools/release_checks.py sbom
	@$(python) tools/release_checks.py audit

clean: ## remove .venv, builds and caches
	@rm -rf .venv build dist src/*.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@rm -f src/gantrymq/kernel/_native*.so src/gantrymq/kernel/_native.c src/gantrymq/kernel/_native.html
	@find src tests fuzz bench tools -name __pycache__ -type d -prune -exec rm -rf {} +

system-packages:
	@tools/system_packages.sh

.venv/bin/python:
	@tools/make_environment.sh

$(locked): requirements.lock | .venv/bin/python
	@echo "environment: installing what requirements.lock pins"
	@$(python) -m pip install -q --require-hashes -r requirements.lock
	@touch $@

$(installed): $(locked) pyproject.toml setup.py $(kernel_sources)
	@tools/install_package.sh
	@touch $@

.venv/.fuzz: fuzz/requirements.lock $(locked)
	@$(python) -m pip install -q --only-binary :all: --require-hashes -r fuzz/requirements.lock 2>/dev/null \
	    || echo "fuzz: atheris cannot be had here, so the built-in engine is used"
	@touch $@

build/uv/bin/uv: | .venv/bin/python
	@$(python) -m venv build/uv
	@build/uv/bin/python -m pip install -q uv
