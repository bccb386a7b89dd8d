# Everything that is done with this tree. The first target makes .venv from the locks; nothing is installed elsewhere.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python on the PATH that is new enough; name another with `make PYTHON=...`.
PYTHON ?= $(firstword $(foreach name,python3 python python3.14 python3.13 python3.12 python3.11,$(shell \
  $(name) -c 'import sys; print("$(name)" if sys.version_info >= (3, 11) else "")' 2>/dev/null)))
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
  --no-emit-find-links $(if $(UPGRADE),--upgrade)
CODE := extender tests $(wildcard loadtests)
FUZZ_SECONDS ?= 600
CASES ?= 20000
STEPS ?= 100000
SEED ?= 1
PODS ?= 24000
VERSION ?= 1.37.1
BUILDER ?= docker
IMAGE = dra-extender:$(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
REVISION = $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)

.PHONY: help run test lint types lock control-plane e2e conformance bench fuzz hostile pythons image clean demo demo-real bench-e2e quality model latency memory load stranded faults soak

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: demo ## The same as demo

demo: .venv/ready ## Show the extender at work on a cluster in memory
	@$(BIN)/dra-extender demo

demo-real: .venv/ready ## Show the same on a real control plane with kube-scheduler, which Go builds once
	@$(BIN)/python -m loadtests.endtoend.demo

test: lint types ## Pass the gate: lint, types, floors and every test; skipped tests are listed with their reasons
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: .venv/ready ## Check style, formatting and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/ready ## Check types, strictly
	$(BIN)/mypy --strict $(CODE)

lock: .venv/ready ## Write the locks anew from pyproject.toml; UPGRADE=1 takes newer versions
	$(INSTALL) --require-hashes --only-binary :all: -r requirements-uv.lock
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml --extra test -o requirements-test.lock
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml --extra load --constraints requirements.lock -o requirements-load.lock
	$(BIN)/uv pip compile $(COMPILE) --group lock -o requirements-uv.lock

control-plane: .venv/ready ## Build etcd and Kubernetes' own programs into the user's cache; VERSION (1.37.1)
	CONTROL_PLANE_VERSION=$(VERSION) $(BIN)/python -m tests.controlplane.programs

e2e: .venv/ready ## Run the tests that need a real control plane; VERSION (1.37.1) names another that tests/controlplane knows
	CONTROL_PLANE_VERSION=$(VERSION) $(BIN)/python -m pytest -m control_plane

conformance: .venv/ready ## Compare with Kubernetes itself: CASES drawn selectors, and CASES drawn clusters (20000)
	DRA_CASES=$(CASES) $(BIN)/python -m pytest -n auto tests/allocation/cel/test_oracle.py tests/allocation/cel/test_shapes.py \
	  tests/allocation/test_derived.py tests/allocation/test_random_clusters.py

bench: .venv/ready ## Run every benchmark; what they print is kept in loadtests/results
	@for file in $$(grep -l __main__ loadtests/bench/*.py); do \
	  module=$$(echo "$${file%.py}" | tr / .); $(BIN)/python -m "$$module" || exit 1; \
	done

bench-e2e: .venv/ready ## Measure on a real control plane, kube-scheduler's own allocator beside us in the same run
	for module in throughput burst sharers crowd hopeless wake links shared; do $(BIN)/python -m "loadtests.endtoend.$$module" || exit 1; done
	$(BIN)/python -m loadtests.plots

latency: .venv/ready ## Measure the verbs in kube-scheduler's cycle, beside a server that thinks of nothing; Go builds the client
	@$(BIN)/python -m loadtests.verbs.latency
	@$(BIN)/python -m loadtests.plots

memory: .venv/ready ## Measure cold start, memory after it, and memory after 100,000 pods, at 5,000 nodes
	@$(BIN)/python -m loadtests.verbs.memory

stranded: .venv/ready ## Count pods that stay rejected though they fit, at 95 % of the devices in use and windows of 500 of 5,000 nodes
	@$(BIN)/python -m loadtests.verbs.stranded

load: .venv/ready .venv-load/locked ## Have the verbs asked by locust, in the mixes and at the rates of loadtests/load; fails beyond its budgets
	@$(BIN)/python -m loadtests.load

quality: .venv/ready ## Measure how good the devices are that pods get, beside the exact optimum and other rules
	@for module in quality quality.together quality.scarce quality.partitions quality.shares quality.openb quality.plots; do $(BIN)/python -m "loadtests.$$module" || exit 1; done

model: .venv/ready ## Play STEPS (100000) random steps of a cluster in simulated time, from SEED (1) on, and see that nothing is lost
	@$(BIN)/python -m tests.interleavings --steps $(STEPS) --seed $(SEED)

faults: .venv/ready ## Have everything go wrong on a real control plane that can, what takes minutes included
	FAULTS=all $(BIN)/python -m pytest tests/faults

soak: .venv/ready ## Have PODS (24000) pods come and go on a real control plane, faults switched on by SEED (1)
	@$(BIN)/python -m loadtests.endtoend.soak --pods $(PODS) --seed $(SEED)

fuzz: .venv/ready ## Run every fuzz.py under tests for FUZZ_SECONDS (600) each
	@for file in $$(find tests -name fuzz.py | sort); do \
	  module=$$(echo "$${file%.py}" | tr / .); echo "$$module"; \
	  $(BIN)/python -m "$$module" --seconds $(FUZZ_SECONDS) || exit 1; \
	done

hostile: .venv/ready ## Search for questions that are hard to search, and keep the worst in the tests
	$(BIN)/python -m tests.allocation.hostile --examples 5000

pythons: .venv/ready ## Ask the same questions under every Python that is present: all must give the same answers
	@for name in python3.11 python3.12 python3.13 python3.14; do \
	  $$name -c 'import sys' 2>/dev/null || { echo "$$name is not present"; continue; }; \
	  $$name -m venv --clear ".venv-$$name" && ".venv-$$name/bin/python" -m pip install --quiet --disable-pip-version-check \
	    --require-hashes --only-binary :all: -r requirements-test.lock || exit 1; \
	  echo "$$name $$(PYTHONPATH=. ".venv-$$name/bin/python" -m tests.allocation.digest)"; \
	done | tee .pythons
	@test "$$(grep -v present .pythons | cut -d ' ' -f 2 | sort -u | wc -l)" = 1

image: ## Build the container image dra-extender, of our version and of this revision; BUILDER (docker), which may be podman or buildah
	$(BUILDER) build --tag $(IMAGE) --tag $(IMAGE)-$(REVISION) --label org.opencontainers.image.revision=$(REVISION) .

clean: ## Remove .venv and every cache
	rm -rf .venv .venv-* .pythons build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Only what the lock names is installed, by hash and as wheels: building a source archive would fetch unlocked tools.
.venv/locked: requirements-test.lock
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(INSTALL) --require-hashes --only-binary :all: -r requirements-test.lock
	@touch $@

# Apart from the gate, which does without all that locust brings.
.venv-load/locked: requirements-load.lock .venv/locked
	$(BIN)/python -m venv --clear .venv-load
	.venv-load/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-load.lock
	@touch $@

.venv/ready: .venv/locked pyproject.toml
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@
