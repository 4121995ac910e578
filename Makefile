# Everything a contributor or a CI needs is a verb here. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned here and run by version, so that none of them enters go.mod.
STATICCHECK  = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Our own analyzers: built from this repository unless a binary is given.
DELTALINT    =

# How long each fuzz target runs, and how long all of them together may. FUZZED lists the packages that must have one.
FUZZTIME   ?= 10s
FUZZBUDGET ?= 480
FUZZED      = schema ledger risk statespace planner workflow workflowfile keys

BENCHTIME ?= 1s
PKG       ?= ./...

.PHONY: help
help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## run the order desk unattended: gates, approvals, learning, the verified ledger
	go run ./examples/orders --auto-approve

.PHONY: build
build: ## build the binaries into bin/
	go build -trimpath -o bin/ ./cmd/...

.PHONY: install
install: ## install deltactl into GOBIN
	go install -trimpath ./cmd/deltactl

.PHONY: deps
deps: ## check what the race detector needs, install it where it can be
	@scripts/deps

.PHONY: test
test: deps ## unit tests of all packages, race detector on, shuffled
	CGO_ENABLED=1 go test -race -shuffle=on $(PKG)

.PHONY: test-heavy
test-heavy: test-modules ## the modules inside, the tests under the build tag heavy, then every fuzz target for FUZZTIME
	scripts/heavy
	scripts/valkey
	scripts/fuzz $(FUZZTIME) $(FUZZBUDGET) $(FUZZED)

.PHONY: test-valkey
test-valkey: ## the tests of the Redis store on Valkey, where it is to be had
	scripts/valkey

.PHONY: test-modules
test-modules: ## vet and test the modules inside this one, whose libraries are heavy to compile
	scripts/modules test

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (make fuzz FUZZTIME=5m FUZZBUDGET=7200)
	scripts/fuzz $(FUZZTIME) $(FUZZBUDGET) $(FUZZED)

.PHONY: bench
bench: ## benchmarks with allocations (make bench BENCHTIME=5s), then the figures beside their bars
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./bench ./bench/risk/...
	go run ./bench/figures

.PHONY: bench-redis
bench-redis: ## the figures of the store on Redis beside the raw server and their bars (needs redis-server)
	go run ./bench/redis

.PHONY: cover
cover: ## coverage per function, and bin/cover.html
	@mkdir -p bin
	go test -coverpkg=./... -coverprofile=bin/cover.out $(PKG)
	go tool cover -func=bin/cover.out | tail -n 1
	go tool cover -html=bin/cover.out -o bin/cover.html

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $(shell git ls-files '*.go' 2>/dev/null || find . -name '*.go')

.PHONY: lint
lint: lint-format lint-vet lint-own lint-static lint-modules lint-shape ## all of the checks below

.PHONY: lint-format
lint-format: ## gofmt has nothing to say
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not formatted, run make fmt:"; echo "$$bad"; exit 1; fi

.PHONY: lint-vet
lint-vet: ## go vet, heavy tests included
	go vet -tags heavy ./...

.PHONY: lint-own
lint-own: ## no zero and no named mo.Result: its zero value is Ok
	@tool="$(DELTALINT)"; \
	[ -n "$$tool" ] || { tool="$$PWD/bin/deltalint"; go build -o "$$tool" ./internal/lint/cmd/deltalint; }; \
	go vet -tags heavy -vettool="$$tool" ./...

.PHONY: lint-static
lint-static: ## staticcheck, heavy tests included
	$(STATICCHECK) -tags heavy ./...

.PHONY: lint-modules
lint-modules: ## go.mod is tidy, here and in the modules inside, the downloaded modules are what go.sum says
	go mod tidy -diff
	scripts/modules tidy
	go mod verify

.PHONY: lint-shape
lint-shape: ## import table, purity, docs, lengths, references
	go test -count=1 ./internal/archtest

.PHONY: clean
clean: ## remove what the verbs above made
	rm -rf bin dist
