# The two commands of the README. Each makes .venv on first use; PYTHON picks its interpreter (3.10 to 3.12).
#
# torch goes first: where pip offers a CPU build of it, PIP_TORCH can ask for that, for example
#   make quickstart PIP_TORCH="--index-url <PyTorch's CPU index> torch==2.13.0"

PYTHON ?= python3
VENV := .venv
PIP_TORCH ?= torch==2.13.0
CONSTRAINTS := constraints/cpu.txt

# Beside the installed packages, for the tests that hold the adapter to other releases of verl and to Megatron.
OTHER_VERLS := 0.8.0 0.9.0
MEGATRON := megatron-core==0.16.1
BESIDE := $(OTHER_VERLS:%=$(VENV)/beside/verl-%/.installed) $(VENV)/beside/megatron-core/.installed

.PHONY: quickstart test test-paths lint clean

quickstart: $(VENV)/.installed
	$(VENV)/bin/pv-rl quickstart $(ARGS)

test: $(VENV)/.installed $(BESIDE)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/python -m pytest $(ARGS)

# verl's asynchronous and one-step-off trainers, critic and rollout correction: three runs more, left out of test.
test-paths: $(VENV)/.installed
	$(VENV)/bin/python -m pytest -m paths tests/verl/test_paths.py $(ARGS)

# Not part of test: pyright fetches its own program from the npm registry on first use.
lint: $(VENV)/.installed
	$(VENV)/bin/pre-commit run --all-files

$(VENV)/.installed: pyproject.toml plugins/pv-cpu/pyproject.toml plugins/pv-data/pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install $(PIP_TORCH)
	$(VENV)/bin/pip install -c $(CONSTRAINTS) -e ".[quickstart,dev]" -e plugins/pv-cpu -e plugins/pv-data
	touch $@

$(VENV)/beside/verl-%/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-deps --upgrade --target $(@D) verl==$*
	touch $@

$(VENV)/beside/megatron-core/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-deps --upgrade --target $(@D) $(MEGATRON)
	touch $@

clean:
	rm -rf $(VENV) runs outputs
