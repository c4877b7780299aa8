# Two commands do all the set-up: `make demo` and `make test`. Nothing is installed outside .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# The model lies in .venv/models, for the demo, the tests and the benchmarks alike.
WITH_MODEL := PERDURE_HOME=$(abspath $(VENV))

# The same verdict each time; and hundreds of processes start, each of which would compile us again.
export PYTHONHASHSEED := 0
export PYTHONDONTWRITEBYTECODE :=

# Each file's tests stay in one process: the examples of a document depend on each other.
PYTEST := $(BIN)/pytest -q -n 2 --dist loadfile
PART ?= all

.PHONY: help demo test check format lint types imports tested coverage nightly net net-recall bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp $(VENV)/model.stamp ## install what the demo needs and show Perdure at work; KEEP=folder keeps the sample
	@$(WITH_MODEL) $(BIN)/python -m examples.demo $(if $(KEEP),--keep "$(KEEP)")

test: $(VENV)/dev.stamp ## install what the tests need and run what answers in minutes
	$(PYTEST) --tier=test $(PYTEST_ARGS)

# After `make net`, read the diff of the recorded files: it is what the change does to others.
net: $(VENV)/dev.stamp ## record tests/net again, after a change that is meant to change answers
	NET=record $(BIN)/pytest -q tests/net

# With NET=record, its figures are recorded again.
net-recall: $(VENV)/dev.stamp $(VENV)/model.stamp ## compare recall on all of shared/data with what was recorded; minutes
	NET=$(NET) $(BIN)/pytest -q tests/net --tier=nightly -m net_recall

check: format lint types imports coverage ## everything that must be green to land: format, lint, types, imports, all tests

format: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

imports: $(VENV)/dev.stamp
	$(BIN)/lint-imports

# Lines are counted in the tests of the tier `test`: counting takes time, and they reach enough.
tested: $(VENV)/dev.stamp
	@rm -rf .coverage && mkdir .coverage
	$(BIN)/coverage run -m pytest -q -n 2 --dist loadfile --tier=check --only=test
	$(PYTEST) --tier=check --only=check

coverage: tested ## all tests but those of the night, and the lines and branches that none reached
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=95

nightly: $(VENV)/dev.stamp ## all at full size with fresh seeds, for hours; PART=crash runs one part
	$(BIN)/python -m tests.nightly $(PART)

bench: $(VENV)/bench.stamp $(VENV)/model.stamp ## compare with peers, and with the limits of this disk; DATA=folder has conversations and sessions_dev
	$(BIN)/python benchmarks/storage.py
	$(BIN)/python benchmarks/artifacts.py
	$(BIN)/python benchmarks/context.py
	$(BIN)/python benchmarks/recall_speed.py
	$(BIN)/python benchmarks/save.py
	$(BIN)/python benchmarks/process.py
	$(BIN)/python benchmarks/hooks.py
ifdef DATA
	$(BIN)/python benchmarks/recall.py $(DATA) --models $(VENV)/models
	$(BIN)/python benchmarks/moments.py $(DATA)/sessions_dev --models $(VENV)/models
else
	@echo "benchmarks/recall.py and moments.py need conversations: make bench DATA=folder"
endif

stubs: $(VENV)/dev.stamp ## write the types of AsyncMemory from those of Memory
	$(BIN)/python -m tests.support.stubs

lock: $(VENV)/dev.stamp ## pin the newest allowed dependencies, with hashes
	requirements/lock $(BIN)

clean: ## remove what make made
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .import_linter_cache .hypothesis .nightly dist

$(VENV)/bin/python:
	@requirements/venv $(PYTHON) $(VENV)

$(VENV)/demo.stamp: requirements/demo.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing what the demo needs into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/demo.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Where it can't be had there is no stamp: the demo then goes by words, and the next one tries again.
$(VENV)/model.stamp: | $(VENV)/demo.stamp
	@if $(WITH_MODEL) $(BIN)/perdure models install; then touch $@; fi

$(VENV)/dev.stamp: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing what the tests need into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/demo.stamp

$(VENV)/bench.stamp: requirements/bench.txt $(VENV)/dev.stamp
	@echo "installing the peers to compare with into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/bench.txt
	@touch $@
