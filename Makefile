# `make sweep` sets everything up and runs the main job; `make test` runs the whole test suite and the checks.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STUDY ?= gss_grid
ARGS ?=
PIP_ARGS ?=
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile
COMPILE = $(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || :
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

.PHONY: sweep test help chaos cluster-test image-test check docs audit lock format bench clean

sweep: $(VENV)/ready
	$(BIN)/python sweep.py $(STUDY) $(ARGS)

help:
	@echo "make sweep          set everything up and run a study: STUDY=gss_grid ARGS=\"--corpus ptb\""
	@echo "make test           the checks and the whole test suite"
	@echo "make check          ruff, mypy, the import contract, the English, links of the pages"
	@echo "make docs           the documentation as a site: site/html/index.html"
	@echo "make chaos          all rounds of the tests of chance: hours"
	@echo "make cluster-test   three Ray machines in network namespaces (root, iproute2, PostgreSQL)"
	@echo "make image-test     the image, built and run without Docker (root, Debian)"
	@echo "make bench          speed and memory, side by side"
	@echo "make audit          known vulnerabilities of the pinned packages"
	@echo "make lock           pin what pyproject.toml allows; newer versions: ARGS=--upgrade"
	@echo "make clean          remove the environment and caches"
	@echo "Variables: PYTHON=$(PYTHON) VENV=$(VENV) PIP_ARGS=\"--index-url ...\" (for torch alone)"

# The checks run beside the tests; what they say comes last, and a check that fails fails this too.
# Three processes for two cores: many tests wait for a moment or another process.
# Python keeps compiled code even if the environment forbids it: tests start hundreds of processes.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/dev
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	$(MAKE) --no-print-directory check >"$$said" 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore=tests/cluster; tests=$$?; \
	wait $$checks; checks=$$?; cat "$$said"; \
	[ $$tests -eq 0 ] && [ $$checks -eq 0 ]

# All rounds of the tests of chance, of which `make test` does a few: hours. The figures: docs/reliability.md.
chaos: $(VENV)/dev
	$(BIN)/python -m pytest -m chaos --chaos --timeout 0 $(ARGS)

# Three Ray machines in network namespaces on this one, with PostgreSQL: needs root, iproute2 and a PostgreSQL server.
cluster-test: $(VENV)/dev
	$(BIN)/python -m pytest tests/cluster

# As root on Debian with buildah and debootstrap, no Docker engine: builds the image and runs a sweep in it.
image-test:
	$(PYTHON) docker/image_test.py image-test --build-arg=PIP_ARGS="$(PIP_ARGS)" $(ARGS)

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check_prose.py
	$(BIN)/python docs/build_site.py

# Search needs a server of files, here Python's; the pages themselves also open without one.
docs: $(VENV)/dev
	$(BIN)/python docs/build_commands.py
	$(BIN)/python docs/build_site.py
	@echo "Open site/html/index.html or, for its search, run: $(PYTHON) -m http.server --directory site/html"

# Known vulnerabilities of everything that is installed, by the registry's own list.
audit: $(VENV)/dev
	@$(BIN)/pip-audit --strict --disable-pip --no-deps --progress-spinner off \
	    --requirement requirements-dev.lock --requirement torch.txt || \
	    { echo "Not clean: a vulnerability is listed above, or the registry's list of them could not be asked."; exit 1; }

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev
	for name in loss ranks scheduling store; do $(BIN)/python -m benchmarks.$$name || exit 1; done

# What pyproject.toml allows, in exact versions with the hashes of their files: uv.lock for uv, and from it requirements.lock
# (what a run and its pages need) and requirements-dev.lock (everything) for pip. torch comes apart (see torch.txt), and its
# CUDA build brings Triton. uv's conditions for Python and systems that it did not look at go: pip would skip every package.
lock: $(VENV)/dev
	$(BIN)/uv lock --upgrade-package "$$(grep ^torch torch.txt)" $(ARGS)
	$(call pins,view,torch|triton) >requirements.lock
	$(call pins,dev,torch) >requirements-dev.lock
pins = $(BIN)/uv export --quiet --frozen --no-emit-project --no-annotate --no-header --extra $(1) | awk '\
	/^[a-z]/ {skip = /^($(2)|cuda-.*|nvidia-.*)==/} !skip {sub(/python_full_version < .3.15. and /, ""); \
	sub(/ ; \(sys_platform == .darwin. or sys_platform == .linux.\)/, ""); print}'

# torch has no hash (see torch.txt), so it comes apart; PIP_ARGS can name the package index of its build for it alone.
# What pip would compile one file after another, a minute of it, is compiled on all cores, but for the packages' tests; a
# file of some package that is no Python, such as a template, is left as it is.
$(VENV)/ready: pyproject.toml requirements.lock torch.txt
	@$(PYTHON) $(NEW_ENOUGH) || { \
	    echo "error: Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>&1):" \
	    "name a newer one, for example make $(or $(MAKECMDGOALS),sweep) PYTHON=python3.12"; exit 2; }
	@[ ! -e $(BIN)/python ] && [ ! -L $(BIN)/python ] || $(BIN)/python $(NEW_ENOUGH) || { \
	    echo "error: $(VENV) is an environment of an older Python, or a broken one: remove that folder," \
	    "or name another one with VENV=FOLDER"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install $(PIP_OPTIONS) $(PIP_ARGS) --requirement torch.txt
	$(BIN)/python -m pip install $(PIP_OPTIONS) --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	touch $@

# What every other target needs.
$(VENV)/dev: $(VENV)/ready requirements-dev.lock
	$(BIN)/python -m pip install $(PIP_OPTIONS) --require-hashes --requirement requirements-dev.lock
	@$(COMPILE)
	touch $@

# The Triton of the oldest torch that pyproject.toml allows (2.9), for which a test compiles the kernels, too.
$(VENV)/oldest-triton: $(VENV)/dev
	$(BIN)/python -m pip install $(PIP_OPTIONS) --no-deps --upgrade --target $@ triton==3.5.0
	touch $@

clean:
	rm -rf $(VENV) site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
