# make with no argument lists what there is. Needs Go, a C compiler, git and make; .ci/deps sees to the rest.

SHELL := /bin/sh
.DEFAULT_GOAL := help
# Targets use both processors by themselves, and their output should be readable.
.NOTPARALLEL:

# The version is the nearest tag, the distance from it and the commit. It is stamped from here and not by the go
# command: what a build says then does not depend on who owns the checkout.
VERSION ?= $(shell git describe --tags --always --dirty --match 'v*' 2>/dev/null | sed 's/^v//')
LDFLAGS  = -X main.version=$(or $(VERSION),devel)

# Tools run at these versions, without a word in go.mod.
GOFUMPT     = go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI    = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# How long each fuzz target runs, how often each benchmark runs, and what else go test is told.
FUZZTIME   ?= 30s
BENCH      ?= .
BENCHCOUNT ?= 1
BENCHRUNS  ?= 5
TESTFLAGS  ?=

# 1 where libpcap's headers are there (or could be installed), else 0; used in recipes, once each.
CGO = $$(sh .ci/deps pcap)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## build bin/srcproof
	@cgo=$(CGO); set -x; \
	CGO_ENABLED=$$cgo go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/srcproof ./cmd/srcproof

.PHONY: demo
demo: build ## judge the Pod's requests before and after a change, then the change, on captures from testdata
	@in=testdata/captures/change; facts='--pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3'; \
	show() { printf '\n$$ %s\n' "$$*"; "$$@"; }; \
	show bin/srcproof analyze $$in/before.pcap $$facts && \
	show bin/srcproof analyze $$in/after.pcap $$facts && \
	show bin/srcproof evidence --before $$in/before.pcap --after $$in/after.pcap $$facts --request 'tcp 172.16.0.0/16 > 10.20.0.10:80' --intent snat

.PHONY: test
test: ## run the tests, with the race detector where it can be had, in random order
	@cgo=$(CGO); race=-race; \
	CGO_ENABLED=$$cgo go list -race errors >/dev/null 2>&1 || \
		{ race=; echo 'test: not checked: data races (the race detector needs cgo on this system)' >&2; }; \
	set -x; CGO_ENABLED=$$cgo go test $$race -shuffle=on $(TESTFLAGS) ./...

.PHONY: integration
integration: ## run the tests that need the real kernel: network namespaces, NAT, tcpdump; as root
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'integration: not checked: real kernel translation in network namespaces (needs root)' >&2; \
	elif sh .ci/deps lab || [ "$${CI:-}" = true ]; then \
		cgo=$(CGO); set -x; CGO_ENABLED=$$cgo go test -count=1 -run 'Lab|Integration' $(TESTFLAGS) ./cmd/srcproof; \
	else \
		echo 'integration: not checked: real kernel translation in network namespaces (see the line above)' >&2; \
	fi

.PHONY: check
check: lint test demo integration ## all that CI runs; the import law is one of the tests

.PHONY: lint
lint: ## formatting, go.mod, vet with and without cgo, staticcheck, golangci-lint
	@cgo=$(CGO); export CGO_ENABLED=$$cgo; \
	unformatted=$$($(GOFUMPT) -l .) || exit; \
	if [ -n "$$unformatted" ]; then printf 'not formatted (make fmt):\n%s\n' "$$unformatted" >&2; exit 1; fi; \
	set -ex; \
	go mod tidy -diff; \
	go mod verify; \
	go vet ./...; \
	CGO_ENABLED=0 go vet ./...; \
	CGO_ENABLED=0 go build -o /dev/null ./...; \
	$(STATICCHECK) ./...; \
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## format, and modernise what the go command can
	go fix ./...
	$(GOFUMPT) -w .

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@CGO_ENABLED=$(CGO) sh .ci/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## hold whole commands against tcpdump's bare read of the same captures (BENCHRUNS=n), then the stages
	@sh .ci/deps lab; CGO_ENABLED=$(CGO) go test -count=1 -timeout 60m -run 'TestBenchFiles' -v ./cmd/srcproof -bench-files -bench-runs $(BENCHRUNS)
	@$(MAKE) --no-print-directory bench-stages

# To compare: BENCHCOUNT=10 make bench-stages >old.txt, change something, again into new.txt, then
# go run golang.org/x/perf/cmd/benchstat@latest old.txt new.txt
.PHONY: bench-stages
bench-stages: ## time the stages with Go's benchmarks (BENCH=regexp, BENCHCOUNT=n)
	@CGO_ENABLED=$(CGO) go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./...

.PHONY: bench-live
bench-live: ## hold live capture against tcpdump at the highest rate at which that drops nothing; as root
	@sh .ci/deps lab; CGO_ENABLED=$(CGO) go test -count=1 -run 'TestBenchLive' -v ./cmd/srcproof -bench-live

# Only the test binaries that have the flag may be given it.
.PHONY: golden
golden: ## rewrite the expected outputs, then show what changed
	@packages=$$(git ls-files -co --exclude-standard '*_test.go' | xargs grep -lE 'flag\.Bool(Var)?\(.*"update"' | xargs -n1 dirname | sort -u | sed 's|^|./|'); \
	[ -n "$$packages" ] || { echo 'golden: no test has the flag -update' >&2; exit 1; }; \
	set -x; CGO_ENABLED=$(CGO) go test $$packages -update; \
	git --no-pager diff --stat

.PHONY: cover
cover: ## run the tests and show how much of each package they reach
	@mkdir -p bin; CGO_ENABLED=$(CGO) go test -coverpkg=./... -coverprofile=bin/cover.out ./...
	@go tool cover -func=bin/cover.out | tail -1

.PHONY: deps
deps: ## install what is missing: libpcap's headers, and as root the lab's programs
	@sh .ci/deps pcap >/dev/null
	@[ "$$(id -u)" != 0 ] || sh .ci/deps lab

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
