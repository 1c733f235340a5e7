# Everything starts here. `make run` and `make test` set up what they need on a fresh Debian or Raspberry Pi OS.
SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
PORT ?= 8080
CLOUD_PORT ?= 8090

.PHONY: help run setup test test-unit test-fuzz hil micro wine rig check format generate web lock docs bench release clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.ml $(VENV)/.data ## Set up and start a cloud with a machine of simulated hardware joined to it (PORT, CLOUD_PORT)
	@PORT=$(PORT) CLOUD_PORT=$(CLOUD_PORT) exec $(PY) examples/cloud_and_machine.py

setup: $(VENV)/.run ## Set up what machine-server and machine-cloud need, and start nothing

test: $(VENV)/.test tests/e2e/typescript/node_modules/.ready ## Set up and run every test
	@failed=; $(PY) -m tests.everything || failed="$$failed tests"; \
	$(PY) -m pytest examples/thermostat -q || failed="$$failed examples/thermostat"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

test-unit: $(VENV)/.test ## The tests that need no process and no socket: seconds
	@$(PY) -m pytest tests/unit -q

rig: $(VENV)/.test ## Test the example thermostat against a model of its box, on the simulated world
	@$(PY) -m pytest examples/thermostat

hil: $(VENV)/.test ## Build the guests of the hardware rig: two minutes (Debian, amd64, root), or at once if nothing has changed
	@$(PY) -m tests.hil.image && $(PY) -m tests.hil.pi

micro: $(VENV)/.test ## Build MicroPython for the tests of the micro server: a minute (Debian, amd64), or at once if nothing has changed
	@$(PY) -m tests.e2e.micro.build

wine: $(VENV)/.test ## Build the room for Windows programs: a minute (Debian, amd64, root), or at once if nothing has changed
	@$(PY) -m tests.wine.build

test-fuzz: $(VENV)/.fuzz ## Fuzz the parsers, each for FUZZ_SECONDS (60)
	@$(PY) -m tests.fuzz $(or $(FUZZ_SECONDS),60)

check: $(VENV)/.check ## Style, types, floors, file sizes, documentation, generated files
	@$(PY) tools/check.py

format: $(VENV)/.check ## Format the sources
	@$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .

docs: $(VENV)/.check ## Build the documentation into docs/_build/html
	@$(VENV)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html && echo "open docs/_build/html/index.html"

bench: $(VENV)/.test ## Print the ratios of docs/performance.md
	@$(PY) -m bench

release: $(VENV)/.run ## Build release files of both programs into build/release: two minutes (Debian; MACHINE=aarch64 for another processor)
	@$(PY) -m tools.release $(if $(MACHINE),--machine $(MACHINE))

generate: $(VENV)/.check ## Write what is made from the sources: reference pages, the models' schema, diagrams
	@$(PY) -m tools.generate

web: $(VENV)/.check ## Build the scripts of the pages from web/ into rpc/pages/static/built, which is checked in
	@$(PY) -m tools.web build

lock: ## Rewrite requirements/*.lock from pyproject.toml (needs uv)
	@tools/lock

clean: ## Remove everything that `make` made
	rm -rf $(VENV) build docs/_build tests/e2e/typescript/node_modules web/node_modules .run .mypy_cache .ruff_cache .import_linter_cache artifacts

$(VENV)/.run $(VENV)/.test $(VENV)/.check $(VENV)/.fuzz: $(VENV)/.%: requirements/%.lock pyproject.toml tools/setup
	@VENV=$(VENV) tools/setup $*

$(VENV)/.ml $(VENV)/.data $(VENV)/.motion: $(VENV)/.%: requirements/%.lock $(VENV)/.run
	@VENV=$(VENV) tools/setup $*

tests/e2e/typescript/node_modules/.ready: tests/e2e/typescript/package-lock.json
	@tools/setup-node tests/e2e/typescript
