# Two commands do everything on a fresh machine with Python 3.11 or newer and a package index:
#   make run     set up .venv, answer the chatbot question, say where the files are
#   make test    set up what tests need, run them

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
JOBS ?= 2
TRACE ?= ../shared/traces/mooncake/conversation_trace.jsonl
TRACES ?= ../shared/traces
TORCH ?= torch==2.13.0
SSD ?= .
CALIBRATE ?= --verify

.DEFAULT_GOAL := help
.PHONY: help run test lint format typecheck bench calibrate validate validation-page notebooks readme clean

help:
	@echo 'make run        set up, simulate scenarios/chatbot.yaml, print the answer'
	@echo 'make test       set up, run the tests (JOBS=$(JOBS))'
	@echo 'make lint       ruff: style and formatting'
	@echo 'make typecheck  mypy --strict on the package'
	@echo 'make bench      what simulating costs, by scale and beside targets; writes docs/performance.md (TRACE=...)'
	@echo 'make calibrate  measure this machine, its drive under SSD=DIR, and check the model against a real run (needs torch)'
	@echo 'make validate   predicted beside expected: closed forms, queueing theory, published measurements (TRACES=DIR)'
	@echo 'make validation-page   write docs/validation.md anew from that'
	@echo 'make notebooks  run the notebooks in place, and keep what they find'
	@echo 'make readme     fill the README and docs/ with the output of runs'
	@echo 'make example-report   write reports/example anew: a report of the chatbot, and its pictures (needs Chromium)'
	@echo 'make clean      remove .venv, caches and build outputs (reports stay)'

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'simkv needs Python 3.11 or newer; name one: make run PYTHON=/path/to/python3' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-torch: | $(BIN)/python
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed-torch | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(VENV)/.installed $@

run: $(VENV)/.installed
	@$(BIN)/simkv run scenarios/chatbot.yaml
	@echo
	@echo 'Files in reports/chatbot:' && ls reports/chatbot

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(VENV)/.installed-dev
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks --trace $(TRACE) --write docs/performance.md

calibrate: $(VENV)/.installed $(VENV)/.installed-torch
	$(BIN)/simkv calibrate --ssd-path $(SSD) $(CALIBRATE)

validate: $(VENV)/.installed
	$(BIN)/simkv validate --data $(TRACES)

validation-page: $(VENV)/.installed
	@mkdir -p build
	$(BIN)/simkv validate --data $(TRACES) --json > build/validation.json || test $$? -eq 4
	$(BIN)/python -m simkv.validation.page build/validation.json > build/validation.md
	mv build/validation.md docs/validation.md

readme: $(VENV)/.installed
	$(BIN)/python -m tests.readme
	$(BIN)/python -m tests.article

notebooks: $(VENV)/.installed-dev
	$(BIN)/python -m tests.notebooks

example-report: $(VENV)/.installed-dev
	$(BIN)/simkv run scenarios/chatbot.yaml --out reports/chatbot
	$(BIN)/simkv report reports/chatbot --out reports/example
	$(BIN)/python -m tests.example reports/example/report.html

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
