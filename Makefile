# `make sweep` sets everything up and runs the main job; `make test` runs the whole test suite and the checks.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STUDY ?= gss_grid
ARGS ?=
PIP_ARGS ?=

.PHONY: sweep test chaos cluster-test image-test check format bench clean

sweep: $(VENV)/ready
	$(BIN)/python sweep.py $(STUDY) $(ARGS)

# The checks run beside the tests; what they say comes last, and a check that fails fails this too.
test: $(VENV)/ready
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	$(MAKE) --no-print-directory check >"$$said" 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --ignore=tests/cluster; tests=$$?; \
	wait $$checks; checks=$$?; cat "$$said"; \
	[ $$tests -eq 0 ] && [ $$checks -eq 0 ]

# All rounds of the tests of chance, of which `make test` does a few: hours. The figures: docs/reliability.md.
chaos: $(VENV)/ready
	$(BIN)/python -m pytest -m chaos --chaos --timeout 0 $(ARGS)

# Three Ray machines in network namespaces on this one, with PostgreSQL: needs root, iproute2 and a PostgreSQL server.
cluster-test: $(VENV)/ready
	$(BIN)/python -m pytest tests/cluster

# As root on Debian with buildah and debootstrap, no Docker engine: builds the image and runs a sweep in it, twice.
image-test:
	$(PYTHON) docker/image_test.py image-test --build-arg=PIP_ARGS="$(PIP_ARGS)" $(ARGS)

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks.loss
	$(BIN)/python -m benchmarks.spectrum
	$(BIN)/python -m benchmarks.scheduling
	$(BIN)/python -m benchmarks.store

# torch first, so that PIP_ARGS can name the package index of another build (CPU only, another CUDA) for it alone.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(PIP_ARGS) torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
