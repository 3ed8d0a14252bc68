# Two commands are enough on a machine with python3 and pip: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo
export HF_HUB_OFFLINE ?= 1
export HF_HUB_DISABLE_TELEMETRY ?= 1
export TOKENIZERS_PARALLELISM ?= false
export OMP_NUM_THREADS ?= 2

.PHONY: help demo test check docs bench tiny-model scene-judge scene-judge-anew clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what protoscore needs into $(VENV) (once, a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## build pictures, train an evaluator, test metrics, write a report (about 6 minutes)
	@bash demo.sh $(BIN) $(DEMO)

test: $(VENV)/.installed  ## the test suite, offline, on two processes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/.installed  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.installed  ## write docs/cli.md from the commands
	$(BIN)/python docs/make_cli.py

bench: $(VENV)/.installed  ## speed, as ratios and rates measured in one run
	for name in run scoring report stats asking judging model; do $(BIN)/python -m tests.benchmarks.$$name || exit 1; done

scene-judge: $(VENV)/.installed  ## teach scene-judge-tiny its tasks again, from where it stands, and measure it (about an hour on a core)
	bash training/embedded/make_judge.sh $(BIN)

scene-judge-anew: $(VENV)/.installed  ## the same from nothing (about two hours on two cores)
	bash training/embedded/make_judge.sh $(BIN) anew

tiny-model: $(VENV)/.installed  ## train protoscore-tiny again, from scene-judge-tiny, and measure it (about 40 minutes on two cores)
	bash training/embedded/make_tiny.sh $(BIN)

clean:  ## remove everything that can be made again
	rm -rf $(DEMO) $(DEMO).work build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
