# `make up` runs Sayso on this machine, `make demo` shows its whole job once, `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: up demo test fuzz pages journeys hops proofs translations screens docs check aap openapi frameworks typescript agentdojo bench soak chaos mutations release wheels sbom lock clean help

UV_VERSION := 0.13.8
VENV := .venv
PYTHON := $(VENV)/bin/python
AAP_VENV := .venv-aap
AAP := $(AAP_VENV)/.installed
OPENAPI_VENV := .venv-openapi
OPENAPI := $(OPENAPI_VENV)/.installed
AGENTDOJO_VENV := .venv-agentdojo
AGENTDOJO := $(AGENTDOJO_VENV)/.installed
# Tools that check and run what Sayso is installed with. Helm is built by Go, not optimized, which takes half as long; without Go, tests of the chart are skipped.
DELIVERY_VENV := .venv-delivery
DELIVERY := $(DELIVERY_VENV)/.installed
HELM := helm.sh/helm/v3/cmd/helm@v3.16.4
DOCS_VENV := .venv-docs
DOCS := $(DOCS_VENV)/.installed
RESTATE_VENV := .venv-restate
# Restate's server comes from npm; without npm, `make bench` skips it.
RESTATE := $(if $(shell command -v npm),$(RESTATE_VENV)/.installed)
# An identity provider of the journeys comes from npm; without npm, its journey is skipped.
PROVIDER := $(if $(shell command -v npm),tests/journeys/provider/node_modules/.installed)
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
SDK := $(VENV)/sdk/.built
# The TypeScript client is built by npm; without Node.js 20, a desk of this checkout does not offer it.
CLIENT_SOURCES := distribution/typescript
NODE := $(shell command -v npm >/dev/null && node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' && echo yes)
CLIENT := $(if $(NODE),$(VENV)/sdk/.client-built)
MCP_CLIENT := $(if $(NODE),tests/frameworks/mcp/typescript/node_modules/.installed)
RECIPES := $(if $(NODE),tests/typescript/recipes/node_modules/.installed)
DIST := dist
CACHES := .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis dist .docs site
JOURNEYS := tests/launch tests/distribution tests/journeys tests/chaos
FORGERIES := $(addprefix tests/service/,$(addsuffix /test_forgeries.py,features/sign_in features/passkeys) core/store/test_macs.py)
DRAWN := tests/service/edge/api/test_drawn_requests.py
TESTS := tests --ignore tests/architecture --ignore tests/proofs --ignore tests/typescript $(addprefix --ignore ,$(JOURNEYS) $(DRAWN))

# With AGAIN=1 only the tests run that failed before, one after the other.
pytest = $(PYTHON) -m pytest -q $(if $(AGAIN),--last-failed --last-failed-no-failures none -n 0,-n 2 --dist $(1))

export PYTHON3
# Each process of a test would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

# Another Python than that of the environment installs anew.
version_of = $(shell $(1) -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null)
ifneq ($(PYTHON3),)
ifneq ($(call version_of,$(PYTHON3)),$(call version_of,$(PYTHON)))
.PHONY: $(RUNTIME) $(DEV)
endif
endif

up: $(SDK) ## run Sayso on this machine until Ctrl-C
	@$(if $(NODE),test -e $(CLIENT) || NPM_CONFIG_FETCH_RETRIES=0 NPM_CONFIG_FETCH_TIMEOUT=15000 $(MAKE) --silent $(CLIENT) || echo 'This desk does not offer its TypeScript client: npm failed.')
	@$(PYTHON) -m sayso up

demo: $(SDK) ## show the whole job once, unattended, on free ports
	@$(PYTHON) -m sayso demo

test: $(DEV) $(SDK) ## run all tests but those of the other targets (TESTS=tests/workers for some)
	@$(call pytest,worksteal) $(TESTS) -m "not browser"

fuzz: $(DEV) ## compare random shell texts with what bash and dash do, forge tokens, flip a desk's bytes (COUNT=100000 SEED=1)
	@COUNT=$(COUNT) SEED=$(SEED) $(PYTHON) -m tests.shells
	@FORGED=$(or $(COUNT),1000000) FLIPS=$(or $(COUNT),1000000) SEED=$(or $(SEED),1) $(PYTHON) -m pytest $(FORGERIES) -q -s --timeout 0

pages: $(DEV) ## test the pages in a real browser
	@$(PYTHON) -m launch.browser
	@$(call pytest,worksteal) tests/service --ignore $(DRAWN) -m browser

journeys: $(DEV) $(SDK) $(CLIENT) $(PROVIDER) $(DELIVERY) ## start whole installations, kill their processes, follow the tutorials
	@$(PYTHON) -m launch.browser
	@$(call pytest,loadgroup) $(JOURNEYS)

hops: $(DEV) ## count the files, functions and calls that the four journeys of docs/architecture.md run through
	@$(PYTHON) -m tests.hops

proofs: $(DEV) ## explore interleavings, crash points and removed guards of the transitions
	@$(call pytest,worksteal) tests/proofs

translations: $(DEV) ## bring the catalogues in templates/languages up to date with the messages
	@$(PYTHON) -m tests.languages

screens: $(DEV) ## take the pictures of the pages in docs/screens
	@$(PYTHON) -m launch.browser
	@$(PYTHON) -m pytest tests/service/edge/web/screens.py tests/service/edge/web/card_screens.py -q

docs: $(RUNTIME) $(DOCS) ## build the documentation site in site/, every link checked
	@$(PYTHON) -m docs.build
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict
	@echo 'Read it at http://127.0.0.1:8000 with: $(PYTHON) -m http.server --bind 127.0.0.1 --directory site'

check: $(DEV) ## check lint, format, types, imports and architecture
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(PYTHON) -m pytest tests/architecture -q

aap: $(RUNTIME) $(AAP) ## run the Agent Approval Protocol's own client and adapters against Sayso
	@$(AAP_VENV)/bin/python -m pytest -c tests/conformance/pytest.ini tests/conformance -q --ignore tests/conformance/openapi

openapi: $(DEV) $(OPENAPI) ## validate the OpenAPI files, use a client generated from one, send each route drawn requests
	@$(OPENAPI_VENV)/bin/python -m pytest -c tests/conformance/pytest.ini tests/conformance/openapi -q
	@$(PYTHON) -m pytest $(DRAWN) -q -n 2 --dist worksteal

agentdojo: $(RUNTIME) $(AGENTDOJO) ## run AgentDojo's tasks and injections through Sayso (ARGS="2 slack" for some)
	@$(PYTHON) -m benchmarks.agentdojo $(ARGS)

bench: $(DEV) $(RESTATE) ## measure Sayso beside two floors and Restate (ARGS="--rounds 1 --scale 0.02" for a quick run)
	@$(PYTHON) -m benchmarks $(ARGS)

soak: $(DEV) ## refuse requests for minutes and check that the service's memory stays flat (MINUTES=10)
	@$(PYTHON) -m benchmarks --soak $(or $(MINUTES),10)

chaos: $(DEV) $(DELIVERY) ## kill processes under load, then check every run (RUNS=1000 KILLS=100 SEED=1, or FAILOVERS=200 REPLICAS=1); restart services behind proxies
	@FAILOVERS=$(FAILOVERS) REPLICAS=$(REPLICAS) RUNS=$(RUNS) KILLS=$(KILLS) SEED=$(SEED) $(PYTHON) -m tests.chaos
	@REQUESTS=20000 $(PYTHON) -m pytest tests/journeys/test_rolling_restart.py -q

mutations: $(DEV) ## remove each guard of each transition and check that a test fails
	@MUTATIONS=all $(PYTHON) -m pytest tests/proofs/test_mutations.py -q -n 2 --dist worksteal

frameworks: $(DEV) $(MCP_CLIENT) ## suspend and resume runs of every framework (ARGS="pydantic_ai" for one, ARGS=--lowest for the oldest packages)
	@$(PYTHON) -m tests.frameworks $(ARGS)

typescript: $(DEV) $(SDK) $(CLIENT) $(RECIPES) ## check, pack and test the TypeScript client and its recipes with a whole Sayso (needs Node.js 20)
ifeq ($(NODE),)
	@echo 'Skipped: the TypeScript client needs npm and Node.js 20 or newer.'
else
	@$(call pytest,loadgroup) tests/typescript
endif

release: $(DEV) $(CLIENT) ## build and check the distribution of this version, then tag the commit
	@.ci/release

wheels: $(RUNTIME) $(CLIENT) ## build the wheels of SDK and server into dist, the same bytes for the same sources
	@rm -rf $(DIST) && $(PYTHON) -m hatchling build --target wheel --directory $(DIST)
	@cd distribution/server && $(abspath $(PYTHON)) -m hatchling build --target wheel --directory $(abspath $(DIST))
	@cd $(DIST) && $(abspath $(PYTHON)) -m pip hash *.whl | sed 's/:$$/ \\/; s|^sayso|./sayso|' >wheels.txt

sbom: $(DELIVERY) ## list all packages of the image in dist/sayso.cdx.json (CycloneDX)
	@mkdir -p $(DIST) && $(DELIVERY_VENV)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--output-file $(DIST)/sayso.cdx.json requirements.lock 2>/dev/null

lock: $(DEV) ## resolve the newest allowed versions into the lock files
	$(VENV)/bin/uv pip compile pyproject.toml --group server --group build --extra cli --group dev \
		--universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file requirements-dev.lock
	$(VENV)/bin/uv pip compile pyproject.toml --group server --group build --extra cli --constraints requirements-dev.lock \
		--universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock
	$(VENV)/bin/uv pip compile tests/conformance/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file tests/conformance/requirements.lock
	$(VENV)/bin/uv pip compile tests/conformance/openapi/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file tests/conformance/openapi/requirements.lock
	cd tests/conformance/openapi && PATH="$(CURDIR)/$(OPENAPI_VENV)/bin:$$PATH" npm install --package-lock-only --omit-lockfile-registry-resolved
	$(VENV)/bin/uv pip compile distribution/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file distribution/requirements.lock
	$(VENV)/bin/uv pip compile docs/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file docs/requirements.lock
	$(VENV)/bin/uv pip compile benchmarks/agentdojo/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file benchmarks/agentdojo/requirements.lock
	$(VENV)/bin/uv pip compile benchmarks/peers/restate/requirements.in --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --quiet --output-file benchmarks/peers/restate/requirements.lock
	cd benchmarks/peers/restate && npm install --package-lock-only --omit-lockfile-registry-resolved
	cd tests/journeys/provider && npm install --package-lock-only --omit-lockfile-registry-resolved
	for folder in $(CLIENT_SOURCES) tests/typescript/recipes tests/frameworks/mcp/typescript; do \
		(cd $$folder && npm install --package-lock-only --omit-lockfile-registry-resolved) || exit 1; \
	done
	for extra in pydantic-ai openai-agents agent-framework langgraph autogen parsimony; do \
		$(VENV)/bin/uv pip compile pyproject.toml $$(ls tests/frameworks/locks/$$extra.in 2>/dev/null) --group server --extra $$extra \
			--constraints requirements.lock --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-header --quiet \
			--output-file tests/frameworks/locks/$$(echo $$extra | tr - _).lock; \
	done
	grep -o '^[a-z0-9._-]*==[^\\]*' requirements.lock | grep -v '^redis==' > $(VENV)/beside-afk.txt
	$(VENV)/bin/uv pip compile pyproject.toml tests/frameworks/locks/afk.in --group server \
		--constraints $(VENV)/beside-afk.txt --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-annotate --no-header --quiet --output-file tests/frameworks/locks/afk.lock
	grep -o '^[a-z0-9._-]*==[^\\]*' requirements.lock | grep -v '^opentelemetry' > $(VENV)/beside-adk.txt
	$(VENV)/bin/uv pip compile pyproject.toml --group server --extra google-adk --constraints $(VENV)/beside-adk.txt \
		--universal --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-header --quiet \
		--output-file tests/frameworks/locks/google_adk.lock
	grep -o '^[a-z0-9._-]*==[^\\]*' requirements.lock | grep -vE '^(aiosqlite|pydantic|pydantic-core|rich)==' > $(VENV)/beside-crewai.txt
	$(VENV)/bin/uv pip compile pyproject.toml --group server --extra crewai --constraints $(VENV)/beside-crewai.txt \
		--overrides tests/frameworks/locks/crewai.overrides --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-annotate --no-header --quiet --output-file tests/frameworks/locks/crewai.lock
	$(VENV)/bin/uv pip compile pyproject.toml --extra cli --extra mcp --constraints requirements.lock \
		--universal --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-header --quiet \
		--output-file tests/frameworks/locks/mcp.lock
	$(VENV)/bin/uv pip compile pyproject.toml tests/frameworks/locks/agui.in --extra cli --extra agui \
		--constraints requirements.lock --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate \
		--no-header --quiet --output-file tests/frameworks/locks/agui.lock
	$(VENV)/bin/uv pip compile pyproject.toml tests/frameworks/locks/claude_agent_sdk.in --extra cli \
		--constraints requirements.lock --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate \
		--no-header --quiet --output-file tests/frameworks/locks/claude_agent_sdk.lock
	$(VENV)/bin/uv pip compile pyproject.toml --extra cli --extra policies --constraints requirements.lock \
		--universal --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-header --quiet \
		--output-file tests/frameworks/locks/sdk.lock
	$(VENV)/bin/uv pip compile tests/frameworks/locks/agui_crewai.in --python-version 3.11 --upgrade --generate-hashes \
		--no-annotate --no-header --quiet --output-file tests/frameworks/locks/agui_crewai.lock
	for name in agent_framework google_adk strands; do \
		$(VENV)/bin/uv pip compile tests/frameworks/locks/agui_$$name.in --universal --python-version 3.11 --upgrade \
			--generate-hashes --no-annotate --no-header --quiet --output-file tests/frameworks/locks/agui_$$name.lock; \
	done
	for extra in pydantic-ai openai-agents agent-framework langgraph autogen parsimony mcp agui sdk; do \
		$(VENV)/bin/uv pip compile pyproject.toml $$(test $$extra != agui || echo tests/frameworks/locks/agui.in) --extra policies \
			$$(case $$extra in sdk) echo --extra cli;; agui|mcp) echo --extra cli --extra $$extra;; *) echo --extra $$extra;; esac) \
			--resolution lowest-direct --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate \
			--no-header --quiet --output-file tests/frameworks/locks/lowest/$$(echo $$extra | tr - _).lock; \
	done

clean: ## remove environments and caches; the data directory stays
	rm -rf $(VENV) $(AAP_VENV) $(AGENTDOJO_VENV) $(DELIVERY_VENV) $(DOCS_VENV) $(OPENAPI_VENV) $(RESTATE_VENV) \
		tests/conformance/openapi/node_modules benchmarks/peers/restate/node_modules tests/journeys/provider/node_modules \
		tests/typescript/recipes/node_modules tests/frameworks/mcp/typescript/node_modules $(addprefix $(CLIENT_SOURCES)/,node_modules dist openapi.json src/api.ts) $(CACHES)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

$(RUNTIME): requirements.lock
	@launch/install.sh $(VENV) requirements.lock $(UV_VERSION)
	@touch $@

# The service offers this wheel at /sdk/.
$(SDK): $(RUNTIME) pyproject.toml README.md $(shell find sayso -name '*.py')
	@rm -rf $(@D) && $(PYTHON) -m hatchling build --target wheel --directory $(@D) >/dev/null 2>&1
	@touch $@

# The service offers this package at /sdk/npm/. Its types are generated from the service's own OpenAPI file.
$(CLIENT): $(SDK) $(wildcard $(addprefix $(CLIENT_SOURCES)/,package*.json tsconfig.json README.md src/*.ts)) $(shell find service sayso -name '*.py')
	@$(PYTHON) -c 'import json; from service.app import create_app; from service.core.settings import Settings; print(json.dumps(create_app(Settings(), quick=False).openapi()))' >$(CLIENT_SOURCES)/openapi.json
	@cd $(CLIENT_SOURCES) && npm ci --silent --no-audit --no-fund --ignore-scripts && rm -rf dist && npm run --silent build && \
		npm pack --silent --ignore-scripts --pack-destination $(abspath $(@D)) >/dev/null
	@touch $@

# Its package node, the Node.js of the recipes, installs a binary by a script.
$(RECIPES): tests/typescript/recipes/package-lock.json
	@cd tests/typescript/recipes && npm ci --silent --no-audit --no-fund
	@touch $@

$(MCP_CLIENT): tests/frameworks/mcp/typescript/package-lock.json
	@cd tests/frameworks/mcp/typescript && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

$(AAP): tests/conformance/requirements.lock
	@launch/install.sh $(AAP_VENV) tests/conformance/requirements.lock $(UV_VERSION)
	@touch $@

$(OPENAPI): tests/conformance/openapi/requirements.lock tests/conformance/openapi/package-lock.json
	@launch/install.sh $(OPENAPI_VENV) tests/conformance/openapi/requirements.lock $(UV_VERSION)
	@cd tests/conformance/openapi && PATH="$(CURDIR)/$(OPENAPI_VENV)/bin:$$PATH" npm ci --silent --no-audit --no-fund
	@touch $@

$(PROVIDER): tests/journeys/provider/package-lock.json
	@cd tests/journeys/provider && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

$(DOCS): docs/requirements.lock
	@launch/install.sh $(DOCS_VENV) docs/requirements.lock $(UV_VERSION)
	@touch $@

$(DELIVERY): distribution/requirements.lock
	@launch/install.sh $(DELIVERY_VENV) distribution/requirements.lock $(UV_VERSION)
	@if command -v go >/dev/null; then GOBIN=$(CURDIR)/$(DELIVERY_VENV)/bin go install -gcflags=all='-N -l' -ldflags='-s -w' $(HELM); fi
	@touch $@

$(AGENTDOJO): benchmarks/agentdojo/requirements.lock
	@launch/install.sh $(AGENTDOJO_VENV) benchmarks/agentdojo/requirements.lock $(UV_VERSION)
	@touch $@

$(RESTATE_VENV)/.installed: benchmarks/peers/restate/requirements.lock benchmarks/peers/restate/package-lock.json
	@launch/install.sh $(RESTATE_VENV) benchmarks/peers/restate/requirements.lock $(UV_VERSION)
	@cd benchmarks/peers/restate && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

# The dev lock holds the runtime's versions too, so what it installs serves both.
$(DEV): requirements-dev.lock requirements.lock
	@launch/install.sh $(VENV) requirements-dev.lock $(UV_VERSION)
	@touch $(RUNTIME) $@
