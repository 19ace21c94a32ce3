# goclaw: build, test and measure. `make help` lists the targets.
export CGO_ENABLED ?= 0
GO ?= go

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## the static binary, in bin/goclaw
	$(GO) build -trimpath -ldflags "-s -w" -o bin/goclaw ./cmd/goclaw

.PHONY: test
test: ## every test, with the race detector where a C compiler is found
	@bash scripts/test

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, go.mod tidy
	@bash scripts/lint

.PHONY: bench
bench: ## the benchmark table: ratios against limits and peers, in one run
	@bash scripts/bench

.PHONY: bench-import
bench-import: ## the speed of an import, beside its limits and the peers
	$(GO) run ./internal/benchimport

.PHONY: bench-recall
bench-recall: ## how well (DATA=DIR) and how fast (MESSAGES=1000000) things are found again
	$(GO) run ./internal/benchrecall -data "$(DATA)" -messages "$${MESSAGES:-0}"

.PHONY: soak
soak: ## the long forms of the crash and two-process tests (SOAK=2m each)
	$(GO) test -count=1 -timeout 60m -run TestProcesses ./store/sqlite ./store/jsonl -soak $${SOAK:-2m}

.PHONY: soak-window
soak-window: ## 3,000-turn sessions on three windows against bad models (docs/window.md)
	GOCLAW_TURNS=$${TURNS:-3000} $(GO) test -count=1 -timeout 30m -run TestLongSessions -v ./runner

.PHONY: fuzz
fuzz: ## every fuzz target for a while (FUZZ=30s)
	@bash scripts/fuzz
