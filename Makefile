# goclaw: build, test and measure. `make help` lists the targets.
export CGO_ENABLED ?= 0
GO ?= go

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## the static binary, in bin/goclaw
	$(GO) build -buildvcs=auto -trimpath -ldflags "-s -w -funcalign=16" -o bin/goclaw ./cmd/goclaw

.PHONY: man
man: build ## the manual pages, in bin/man
	bin/goclaw man bin/man

.PHONY: test
test: ## every test, with the race detector where a C compiler is found
	@bash scripts/test

.PHONY: screenshots
screenshots: ## the pictures of the page in docs/images, with Chromium
	@mkdir -p docs/images
	GOCLAW_SCREENSHOTS="$(CURDIR)/docs/images" $(GO) test -count=1 -run 'TestPage$$/^pictures$$' ./cmd/goclaw

.PHONY: recording
recording: ## the recording of a session in the terminal, docs/images/terminal.svg
	$(GO) run ./internal/tui/recording docs/images/terminal.svg

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, go.mod tidy
	@bash scripts/lint

.PHONY: bench
bench: ## the speed of stores, turns and starts: ratios against limits and peers, in one run (BENCH=full: the largest sizes too)
	@bash scripts/bench

.PHONY: bench-import
bench-import: ## the speed of an import, beside its limits and the peers
	$(GO) run ./internal/bench/importing

DATA ?= $(wildcard ../shared/recall)

.PHONY: bench-recall
bench-recall: ## how well search finds, beside FTS5, the recipe R1 and the goals (DATA="DIR...")
	$(GO) run ./internal/bench/recall -data "$(DATA)" $(FLAGS)

.PHONY: bench-recall-parts
bench-recall-parts: ## what each part of the ranking gives (DATA="DIR...")
	$(GO) run ./internal/bench/recall -data "$(DATA)" -parts $(FLAGS)

.PHONY: bench-search
bench-search: ## how fast search is (MESSAGES=100000)
	$(GO) run ./internal/bench/recall -messages "$${MESSAGES:-100000}"

.PHONY: bench-start
bench-start: ## how fast goclaw search is from the start of the process, and how large small indexes are
	$(GO) run ./internal/bench/recall -start

.PHONY: bench-postgres
bench-postgres: ## the PostgreSQL store beside its limits: appends beside pgbench, a turn, a million records, a million sessions
	$(GO) run ./internal/bench/postgres

.PHONY: bench-growth
bench-growth: ## how large a PostgreSQL database of sessions becomes, and its log (RECORDS=1000000)
	$(GO) run ./internal/bench/growth -records "$${RECORDS:-1000000}"

.PHONY: bench-serve
bench-serve: ## goclaw serve under load: reads beside 1,000 followers and 50 turns, followers that do not read, memory
	$(GO) run ./internal/bench/serve

.PHONY: bench-terminal
bench-terminal: ## the chat on a terminal beside its limits: first frame, a key press while an answer streams, bytes written, memory
	$(GO) run ./internal/bench/terminal

.PHONY: bench-all
bench-all: ## every speed claim: bench, bench-import, bench-search, bench-start, bench-postgres, bench-serve and bench-terminal
	@status=0; for t in bench bench-import bench-search bench-start bench-postgres bench-serve bench-terminal; do echo "== $$t"; $(MAKE) --no-print-directory $$t || status=1; echo; done; exit $$status

.PHONY: soak
soak: ## the long forms of the crash, power failure, two-process and bit flip tests (SOAK=2m each)
	$(GO) test -count=1 -timeout 60m -run 'TestProcesses|TestBatchCut|TestPowerFailure|TestCopyOfALive|Flip' ./store/sqlite ./store/jsonl -soak $${SOAK:-2m}

.PHONY: soak-postgres
soak-postgres: ## three processes on one PostgreSQL that are killed, stopped and cut off, directly and through pgbouncer (SOAK=10m in all)
	$(GO) test -count=1 -timeout 120m -run 'TestLoad$$' -v ./store/postgres -soak $${SOAK:-10m}

.PHONY: suite-postgres
suite-postgres: ## the suite of all stores on PostgreSQL with as many repetitions as on files (make test has fewer; KILLS=2m of kills)
	$(GO) test -count=1 -timeout 120m -run 'TestStore$$|TestProcesses$$' ./store/postgres -rapid.checks 101 -soak $${KILLS:-2m}

.PHONY: soak-window
soak-window: ## 3,000-turn sessions on three windows against bad models (docs/lab/window.md)
	GOCLAW_TURNS=$${TURNS:-3000} $(GO) test -count=1 -timeout 30m -run TestLongSessions -v ./runner

.PHONY: fuzz
fuzz: ## every fuzz target for a while (FUZZ=30s)
	@bash scripts/fuzz

.PHONY: module-path
module-path: ## give the module another path, to publish it (P=host/you/goclaw)
	@$(GO) run ./internal/modulepath "$(P)"
