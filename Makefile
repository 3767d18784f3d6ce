# `make demo` and `make test` work after a plain clone: they set up .venv (and Java, where possible) by themselves.

SHELL := /bin/sh
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint format docs figures lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## create .venv with the locked dependencies, and see to Java

$(READY): pyproject.toml papers/pyproject.toml requirements.lock scripts/setup.sh
	@sh scripts/setup.sh
	@touch $@

demo: $(READY) ## watch subscriptions match a live stream, until Ctrl-C
	@$(BIN)/nearcast demo

test: lint ## format, lint, types, import contract, and all but the slow tests
	$(PYTEST) -m 'not slow'

test-all: lint ## everything, the slow tests too, with more random examples
	NEARCAST_THOROUGH=1 $(PYTEST)

lint: $(READY) ## format, lint, types and import contract only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## build the documentation as a site, strictly, into site/
	$(BIN)/zensical build --strict --clean

figures: $(READY) ## make docs/benchmarks.md, its plots and the README's table from the saved results
	$(BIN)/python -m nearcast_papers.render

# Neither index nor URL is written down: the lock works with whatever registry pip is configured for.
lock: $(READY) ## pin the newest versions of all dependencies in requirements.lock
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --group dev \
	    --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	    pyproject.toml --output-file requirements.lock
	@! grep -n '://' requirements.lock

clean: ## remove caches and build products; .venv stays
	rm -rf build dist site .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find src papers tests -type d -name __pycache__ -prune -exec rm -rf {} +
