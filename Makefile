# Two commands do everything on a fresh machine: `make chat` and `make test`.
PYTHON ?= python3
# TORCH=system reuses a torch that is already installed for $(PYTHON) instead of downloading one.
TORCH ?= pinned
VENV := .venv
BIN := $(VENV)/bin
ifeq ($(TORCH),system)
VENV_FLAGS := --system-site-packages
CONSTRAINTS := $(VENV)/constraints.txt
else
CONSTRAINTS := constraints.txt
endif

.PHONY: chat test coverage soak gpu lint types wheel screenshots clean

chat: $(VENV)/.installed
	$(BIN)/dsv4chat

# Two workers, so one compute thread each.
test: $(VENV)/.dev-installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not soak and not gpu" tests

# The tests that run the folder dsv4chat/, and how much of it, lines and branches; it fails below 90 %. The time of
# the first paint is not taken while every line is counted.
COVERING := tests/app tests/cli tests/store tests/exchange tests/tools tests/test_*.py \
	$(addprefix tests/runtime/test_,bench_decode.py bench_turns.py benchmark.py compare.py evaluation.py)
coverage: $(VENV)/.dev-installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not soak and not gpu" --timeout 600 \
		--deselect tests/app/test_real_terminal.py::test_the_first_paint_comes_within_half_a_second \
		--cov --cov-fail-under=90 $(COVERING)

soak: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m soak --timeout 3600 -rA --no-header tests

# On a machine with a CUDA device.
gpu: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m gpu --timeout 900 -rA --no-header tests

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev-installed
	$(BIN)/mypy

screenshots: $(VENV)/.dev-installed
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/cache_picture.py

wheel: $(VENV)/.dev-installed
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/constraints.txt: constraints.txt
	$(PYTHON) -c 'import torch' || (echo "TORCH=system: $(PYTHON) has no torch; install one or run plain 'make chat'." >&2; exit 1)
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	grep -v '^torch==' constraints.txt > $@

$(VENV)/.installed: pyproject.toml constraints.txt $(filter $(VENV)/%,$(CONSTRAINTS))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c $(CONSTRAINTS) -e .
	touch $@

$(VENV)/.dev-installed: pyproject.toml constraints.txt $(filter $(VENV)/%,$(CONSTRAINTS))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c $(CONSTRAINTS) -e ".[dev]"
	touch $@ $(VENV)/.installed
