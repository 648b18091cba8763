# Everything that is run here, by people and machines alike. `make` alone lists it.
#
# .venv holds exactly what the lock files name; a changed lock is installed by the next target that needs it.

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/runtime.stamp
DEV := $(VENV)/dev.stamp
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps
LOCKED := $(INSTALL) --require-hashes --only-binary :all:
UV := uv==0.13.9
AUDIT := pip-audit==2.10.1
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-annotate --no-header
PYTHON ?= $(shell for name in python3.11 python3.12 python3; do \
	"$$name" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$name"; break; }; done)
ARGS ?=
# Two workers, each with a file at a time. ARGS=-n0 runs everything in one process, for a debugger or one test's output as it comes.
WORKERS := -n 2 --dist loadfile

# Servers and clients of others that tests talk to; those with wheels of their own stand in requirements-dev.in.
PEERS := $(VENV)/peers
MOCKPOST := mockpost==0.3.0
TEST_API := telegram-test-api@4.2.1
CACHED_BY_NPM := @wecom/crypto@1.0.1 @tencent-weixin/openclaw-weixin@2.4.9

unexport PYTHONDONTWRITEBYTECODE  # compiled once: each worker and each gateway of the tests would compile everything again

.DEFAULT_GOAL := help
.PHONY: help run test test-slow web-test check bench lock audit venv chromium peers clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

run: $(RUNTIME) config.json ## start the gateway and print the page's address with a sign-in link
	@$(BIN)/python -m gateway run $(ARGS)

test: $(DEV) chromium peers ## run the tests that take seconds; says what it skips and why
	$(BIN)/python -m pytest $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(DEV) chromium peers ## run the tests that take minutes
	$(BIN)/python -m pytest $(WORKERS) -m slow $(ARGS)

web-test: $(DEV) chromium ## run the tests that drive a real browser
	$(BIN)/python -m pytest $(WORKERS) -m browser $(ARGS)

check: $(DEV) ## lint, types, and the lock files against their sources
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -q -k lock tests/test_packaging.py

bench: $(DEV) ## measure the gateway against a direct call to the same endpoint
	$(BIN)/python -m tests.bench $(ARGS)

lock: $(BIN)/uv ## resolve requirements*.in anew into the lock files (UPGRADE=--upgrade for newer versions)
	$(COMPILE) $(UPGRADE) --excludes requirements.exclude requirements.in -o requirements.lock
	$(COMPILE) $(UPGRADE) -c requirements.lock requirements-dev.in -o requirements-dev.lock

audit: $(BIN)/uv ## report known vulnerabilities of what is locked, where a database can be reached
	@report=$(VENV)/audit.txt; total=$$(grep -c == requirements.lock); \
	$(BIN)/uv tool run --quiet $(AUDIT) --disable-pip --require-hashes -r requirements.lock > $$report 2>&1; code=$$?; \
	unknown=$$(grep -c 'could not be audited' $$report); \
	if grep -q '^Found ' $$report; then cat $$report; exit 1; fi; \
	if [ $$code -ne 0 ] || [ $$unknown -eq $$total ]; then echo "Nothing was audited: no database of vulnerabilities could be reached ($$report)."; \
	else echo "No known vulnerability in $$((total - unknown)) packages; $$unknown are unknown to the database ($$report)."; fi

venv: $(RUNTIME) ## make .venv with what the gateway runs on, and nothing else

clean: ## remove .venv and every cache; configuration and data stay
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .coverage .shots build *.egg-info
	find gateway channels agent memory tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo 'Python 3.11 or newer with its venv module is needed (Debian: apt-get install python3 python3-venv),'; \
		echo 'or name one: make run PYTHON=/path/to/python3.11'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements.lock | $(BIN)/python
	@echo 'Installing what the gateway runs on (about a minute, once) …'
	$(LOCKED) -r requirements.lock
	@printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -m gateway "$$@"\n' '$(CURDIR)' '$(CURDIR)/$(BIN)/python' > $(BIN)/yumegate && chmod +x $(BIN)/yumegate
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	@echo 'Installing what tests and checks add …'
	$(LOCKED) -r requirements-dev.lock
	@touch $@

$(BIN)/uv: | $(BIN)/python
	$(INSTALL) $(UV)

config.json: # has no prerequisites: an existing one is never touched
	install -m 600 config.json.example config.json

peers: $(PEERS)/mockpost.stamp $(PEERS)/test_api.stamp # tests fetch nothing themselves: what is missing here, they skip and say so

$(PEERS)/mockpost.stamp: | $(DEV)
	@mkdir -p $(@D); if $(BIN)/python -m venv $(@D)/mockpost && $(@D)/mockpost/bin/python -m pip --disable-pip-version-check \
		--retries 0 --timeout 20 install --quiet $(MOCKPOST) 2>$(@D)/mockpost.log; then touch $@; \
	else echo "$(MOCKPOST) cannot be installed, so its tests are skipped ($(@D)/mockpost.log)."; fi

$(PEERS)/test_api.stamp: | $(DEV)
	@mkdir -p $(@D); if npm install --no-save --no-audit --fetch-retries=0 --prefix $(@D)/test_api $(TEST_API) >$(@D)/npm.log 2>&1 && \
		npm cache add $(CACHED_BY_NPM) >>$(@D)/npm.log 2>&1; then touch $@; \
	else echo "$(TEST_API) or $(CACHED_BY_NPM) cannot be had from npm, so their tests are skipped ($(@D)/npm.log)."; fi

chromium: # the browser tests look for it on the PATH
	@if command -v chromium >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then why='there is no apt-get to install it with'; \
	elif [ "$$(id -u)" -ne 0 ]; then why='only root may install it (apt-get install chromium fonts-noto-cjk)'; \
	elif echo 'Installing Chromium for the browser tests …' && timeout 120 apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk >/dev/null; then exit 0; \
	else why='apt-get could not install it'; fi; \
	echo "Chromium is missing, so the browser tests are skipped: $$why."
