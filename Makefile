# `make run` serves on this machine, `make test` tests on real parts; `make` lists the rest.

.DEFAULT_GOAL := help
SHELL := bash

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LISTEN ?= 127.0.0.1:8080
FUZZTIME ?= 60s
SEED ?= 1
STAGE ?= dev
ARCH ?= arm64

GO ?= go
LDFLAGS := -s -w -X main.version=$(VERSION)
# Static, no paths of the building machine; lambda.norpc leaves out net/rpc, and with it a third of the binary.
GOBUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)"
LAMBDABUILD = $(GOBUILD) -tags lambda.norpc
LAMBDA_GOARCH = $(if $(filter x86_64 amd64,$(ARCH)),amd64,arm64)

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# --- on this machine

.PHONY: run
run: bin/holdfast ## Build and serve on 127.0.0.1:8080 (LISTEN=, CONFIG=file); needs no key
	bin/holdfast serve --listen $(LISTEN) $(if $(CONFIG),--config $(CONFIG))

.PHONY: build
build: bin/holdfast bin/chat/bootstrap bin/stream/bootstrap bin/upkeep/bootstrap ## Build bin/holdfast and bin/{chat,stream,upkeep}/bootstrap

# Always asked: Go's own cache knows what changed.
.PHONY: bin/holdfast bin/chat/bootstrap bin/stream/bootstrap bin/upkeep/bootstrap
bin/holdfast: need-go
	$(GOBUILD) -o $@ ./cmd/holdfast
bin/chat/bootstrap bin/stream/bootstrap bin/upkeep/bootstrap: bin/%/bootstrap: need-go
	$(LAMBDABUILD) -o $@ ./functions/$*

.PHONY: services-up
services-up: ## Start Postgres with pgvector and dynalite; prints their addresses
	@scripts/services up

.PHONY: services-down
services-down: ## Stop them
	@scripts/services down

.PHONY: migrate
migrate: bin/holdfast ## Prepare the database and table that the environment names
	bin/holdfast migrate

# --- checks

.PHONY: test
test: need-go ## Test everything on real parts, under the race detector, with the clients' SDKs
	@scripts/services run -- scripts/test

.PHONY: test-sdk
test-sdk: build ## Only the clients' SDKs against serve and the stream function, and through them every dialect
	@scripts/sdk-tests

.PHONY: spin
spin: ## Search the model of the breaker's protocol whole, with Spin
	@scripts/spin

.PHONY: test-sam
test-sam: need-go ## Validate, build and invoke through SAM, with Postgres and DynamoDB in containers
	@scripts/sam-test

.PHONY: lint
lint: need-go ## Format, linters, shell, template
	@scripts/lint

.PHONY: bench
bench: need-go ## Run the benchmarks, the breaker's beside other breakers
	$(GO) test -run '^$$' -bench . -benchmem ./...
	cd test/bench && $(GO) test -run '^$$' -bench . -benchmem ./...

# PAIRS is a file of JSON objects, one a line: a, b, same, set.
PAIRS ?= internal/cache/testdata/pairs.jsonl
.PHONY: eval
eval: need-go ## Judge the cache's rules on pairs of questions (PAIRS=file); docs/cache.md keeps the table
	@$(GO) run ./test/eval -pairs $(PAIRS)

.PHONY: bench-cache
bench-cache: need-go ## Fill Postgres with a million cached answers (ENTRIES=) and measure; some ten minutes
	@HOLDFAST_BENCH_ENTRIES=$(ENTRIES) scripts/services run -- $(GO) test -run '^$$' -bench Scale -benchtime 1x -timeout 60m ./internal/cache

.PHONY: fuzz
fuzz: need-go ## Fuzz every parser for FUZZTIME each
	@scripts/fuzz $(FUZZTIME)

# One thread a run, no race detector: what runs in virtual time has nothing to race with.
SIMULATE = SEED=$(SEED) GOGC=400 $(GO) test -count 1 -v -timeout 12h -run '^Test(Fleet)?Simulat' ./internal/routing/breaker
.PHONY: sim
sim: need-go ## Simulate fleets of the breaker, some minutes (SEED=); prints docs/breaker.md's table, shorter
	SIM=sample $(SIMULATE)

.PHONY: sim-long
sim-long: need-go ## The whole: 1,000 hours of fleets, the table of docs/breaker.md
	SIM=long $(SIMULATE)

.PHONY: fmt
fmt: need-go ## Format the code
	@scripts/lint --fix

.PHONY: tidy
tidy: need-go ## Tidy the modules
	$(GO) mod tidy
	cd test/sdk/go && $(GO) mod tidy
	cd test/bench && $(GO) mod tidy
	cd test/faults && $(GO) mod tidy

# --- deploy

# SAM's makefile builder calls these with ARTIFACTS_DIR set. It doesn't say the architecture: ARCH=x86_64 in the
# environment does, and has to be what the template's parameter says.
build-ChatFunction: FUNCTION = chat
build-StreamFunction: FUNCTION = stream
build-UpkeepFunction: FUNCTION = upkeep
.PHONY: build-ChatFunction build-StreamFunction build-UpkeepFunction
build-ChatFunction build-StreamFunction build-UpkeepFunction:
	GOOS=linux GOARCH=$(LAMBDA_GOARCH) $(LAMBDABUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(FUNCTION)
	cp deploy/holdfast.yaml "$(ARTIFACTS_DIR)/holdfast.yaml"

# The architecture stands in samconfig.toml, for the binaries and for the template.
STAGE_ARCH = $(shell sed -n '/^\[$(STAGE)\.deploy/,/^$$/s/.*Architecture=\([a-z0-9_]*\).*/\1/p' samconfig.toml)
.PHONY: deploy
deploy: need-go ## Build and deploy with SAM (STAGE=dev or prod, both in samconfig.toml)
	ARCH=$(STAGE_ARCH) sam build --config-env $(STAGE)
	sam deploy --config-env $(STAGE)

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .aws-sam

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go 1.26 or newer is needed: https://go.dev/dl" >&2; exit 1; }
