# Everything a person or the CI does with this tree. `make` alone lists the targets.

SHELL := /bin/bash
VENV  := .venv
PY    := $(VENV)/bin/python
# Extra arguments for pytest: make test ARGS="-k probes -x"
ARGS  ?=
# The distribution in the virtual machine: bookworm or trixie
VM    ?= bookworm
export MALLOC_ARENA_MAX ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench saves outages fuzz-api test-client chaos faults mutants inversions deb binary vm test-vm test-podman5 test-package test-arm64 clean

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## install what is missing (as root, from the distribution) and make .venv/bin/edgelet

run: $(VENV)/.installed ## start the agent on manifests/ with a demo image, in the foreground
	@$(PY) -m edgelet.demo run

test: export EDGELET_FUZZ_SECONDS ?= 60
test: export EDGELET_CHAOS_SECONDS ?= 120
# End-to-end tests mostly wait, so some run at a time; the others measure times and run alone. 5 = none chosen.
test: $(VENV)/.dev ## every test this machine can run, real Podman included; says what it skipped and why
	@status=0; \
	$(PY) -m pytest -m "not e2e" $(ARGS) || [ $$? -eq 5 ] || status=1; \
	$(PY) -m pytest -m e2e -n 3 $(ARGS) || [ $$? -eq 5 ] || status=1; \
	exit $$status

check: $(VENV)/.dev ## format, lint, types and layers; no test
	$(VENV)/bin/ruff format --check --diff edgelet tests
	$(VENV)/bin/ruff check edgelet tests
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/.dev ## measure start, restart, memory and CPU beside bare Podman; prints ratios
	$(PY) -m tests.bench $(ARGS)

saves: export EDGELET_SAVES ?= 500
saves: export EDGELET_SAVES_STATE ?= build/saves.state
saves: $(VENV)/.dev ## 500 rounds of real editors' saves with a real pod behind; goes on where it ended after 40 minutes
	@mkdir -p build
	nice -n 5 $(PY) -m pytest -s tests/e2e/test_saves.py $(ARGS)

outages: export EDGELET_OUTAGE_SECONDS ?= 600
outages: export EDGELET_OUTAGE_STATE ?= build/outages.state
outages: $(VENV)/.dev ## ten minutes of an API server that fails at random, then all is equal; goes on where it was interrupted
	@mkdir -p build
	nice -n 10 $(PY) -m pytest -s tests/e2e/test_mirror_outages.py -k random $(ARGS)

fuzz-api: export FUZZ_SECONDS ?= 600
fuzz-api: $(VENV)/.dev ## ten minutes of schemathesis (installed into build/) over the API: no 5xx, no hang
	@test -x build/schemathesis/bin/schemathesis || { python3 -m venv build/schemathesis && \
	    build/schemathesis/bin/pip install -q 'schemathesis>=4,<5'; }
	nice -n 10 $(PY) -m tests.fuzz_api --schemathesis $(abspath build/schemathesis)/bin/schemathesis \
	    --seconds $$FUZZ_SECONDS $(ARGS)

test-client: $(VENV)/.dev ## the official Python client against an agent (installs it: 100 MB)
	$(PY) -m pip install -q 'kubernetes>=28'
	nice -n 5 $(PY) -m pytest tests/e2e/test_python_client.py $(ARGS)

chaos: $(VENV)/.dev ## half an hour of random trouble for pods, Podman and the agent; goes on where it ended after 40 minutes
	@mkdir -p build
	nice -n 5 tests/e2e/chaos --seconds $${EDGELET_CHAOS_SECONDS:-1800} --state build/chaos.state $(ARGS)

faults: $(VENV)/.dev ## two hours of 20 pods behind a Podman that hangs, lies and loses answers; goes on after 40 minutes
	@mkdir -p build
	nice -n 5 tests/e2e/chaos --faults --seconds $${EDGELET_FAULTS_SECONDS:-7200} --state build/faults.state $(ARGS)

mutants: $(VENV)/.dev ## break edgelet/core/ in many small ways; fails when the tests notice too few
	nice -n 10 $(PY) -m tests.mutants $(ARGS)

inversions: $(VENV)/.dev ## turn each rule of the kubelet to its opposite; a test of that rule must fail
	nice -n 10 $(PY) -m tests.inversions $(ARGS)

deb: $(VENV)/.installed ## dist/edgelet_VERSION_all.deb; lintian looks at it where it is installed
	PYTHON=$(abspath $(PY)) systemd/debian/build
	@if command -v lintian >/dev/null; then lintian --fail-on error,warning dist/edgelet_*_all.deb; fi

binary: $(VENV)/.installed ## dist/edgelet, one executable that needs no Python, and dist/edgelet.pyz (Debian 12)
	PYTHON=$(abspath $(PY)) systemd/binary/build

vm: deb ## boot a virtual machine with the package in it and open a shell there; VM=trixie for Debian 13
	$(PY) -m tests.vm.shell $(VM)

test-vm: deb ## the tests of the real target, in a virtual machine (as root; slow: software emulation)
	EDGELET_VM=$(VM) $(PY) -m pytest tests/vm --timeout 1800 $(ARGS)

test-podman5: $(VENV)/.dev ## contract suite and twelve end-to-end tests with Debian 13's Podman, in a root of its own (as root)
	nice -n 5 tests/roots/podman.sh trixie $(ARGS)

test-package: $(VENV)/.dev ## the package upgraded from the first there was, removed and purged while pods run (as root)
	tests/roots/package.sh $(ARGS)

test-arm64: deb ## the package and edgelet.pyz on arm64, emulated, before a stand-in for Podman (as root)
	tests/roots/arm64.sh $(ARGS)

clean: ## stop the demo's pods and remove all that this Makefile made
	@if [ -x $(PY) ] && [ -e .run ]; then $(PY) -m edgelet.demo clean; fi
	rm -rf $(VENV) .run build dist mutants *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache .coverage
	find edgelet tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A changed setup.cfg means other dependencies or another entry point: install again.
$(VENV)/.installed: setup.cfg pyproject.toml
	.ci/setup run
	@touch $@

$(VENV)/.dev: setup.cfg pyproject.toml
	.ci/setup dev
	@touch $(VENV)/.installed $@
