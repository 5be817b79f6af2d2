# Everything a person needs to work on octarbiter. `make help` lists it.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KILLS ?= 1000
WHAT ?= controller
PYTEST_ARGS ?=
ON_KUBERNETES := tests/kubernetes tests/contract tests/clients

.PHONY: help install demo test test-fast test-kubernetes test-kubectls lint generate lock soak bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

install: $(READY) ## Make .venv with the locked dependencies and the command octo

demo: $(READY) ## Run the manual's first TaskSet in a cluster of its own and show it succeed
	$(BIN)/octo run examples/manual-1-tensorflowdemo.yaml --resource nvidia.com/gpu=3

test: lint test-fast test-kubernetes ## All tests

test-fast: $(READY) ## The tests that need no cluster
	$(BIN)/python -m pytest tests $(addprefix --ignore=,$(ON_KUBERNETES)) -n auto $(PYTEST_ARGS)

test-kubernetes: $(READY) ## The tests on a real Kubernetes (built on first use)
	$(BIN)/python -m pytest $(ON_KUBERNETES) -n 2 --dist loadfile $(PYTEST_ARGS)

test-kubectls: $(READY) ## kubectl of every minor version on the embedded cluster (built on first use)
	OCTARBITER_KUBECTLS=all $(BIN)/python -m pytest $(wildcard tests/clients/test_kubectl*.py) -n 2 --dist loadfile $(PYTEST_ARGS)

lint: $(READY) ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generate: $(READY) ## Write the generated files anew: CRD, install manifest, reference
	$(BIN)/python -m tools.generate

lock: ## Resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --quiet --no-header --generate-hashes --no-emit-index-url --no-emit-find-links \
		--universal --all-extras --group dev --upgrade pyproject.toml -o requirements.lock

soak: $(READY) ## Kill the controller (or WHAT=arbitrator) KILLS times (default 1000) while it is at work
	$(BIN)/python tools/soak.py --what $(WHAT) --kills $(KILLS)

bench: $(READY) ## Measure everything, each beside the raw limit or the real thing in the same run
	$(BIN)/python benchmarks/lifecycle.py
	$(BIN)/python benchmarks/embedded.py
	$(BIN)/python benchmarks/store.py

clean: ## Remove .venv and caches of this checkout (built Kubernetes binaries stay in the user's cache)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
