# berth: `make help` lists what there is to do.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO      = $(shell hack/go.sh)
# The version: that of git's last tag, or that of the next release where there is no tag or no git
NEXT    := 0.1.0
VERSION ?= $(or $(patsubst v%,%,$(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null)),$(NEXT)$(addprefix +g,$(shell git describe --always --exclude '*' --dirty 2>/dev/null)))
# Where make install installs
PREFIX  ?= /usr/local
LDFLAGS := -s -w -X main.version=$(VERSION)
# Which benchmarks run, and how long a fuzz test does: make fuzz FUZZTIME=1h
BENCH    ?= .
FUZZTIME ?= 60s
# How long make soak attacks
SOAK     ?= 30m
# The packages whose coverage make cover shows
COVER   ?= ./api/... ./cmd/... ./controller/... ./runtime/... ./store/...
# The packages that make verify tests with the race detector
CORE    := ./controller ./controller/container ./store/... ./api/auth ./api/intent ./api/sftp ./api/stream
LINT    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.8.0
# One set of flags for builds and tests: with another one, every package is compiled once more
export GOFLAGS ?= -trimpath
export CGO_ENABLED ?= 0
export DOCKER_HOST
export ENGINES

.PHONY: help run build install deb release test test-kube test-one-node cover engines quota race stress soak fuzz lint lint-api ui bench demo check verify clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/berth, one static binary, bin/berth-keeper, the first process of containers, and bin/berth-wings
	@[ -e bin/berth ] || echo "building bin/berth; the first time this takes a minute or two"
	@$(GO) build -buildvcs=auto -ldflags '$(LDFLAGS)' -o bin/ ./cmd/berth ./cmd/berth-wings
	@CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o bin/berth-keeper ./cmd/keeper

install: build ## install berth, its man pages and its shell completions into PREFIX (/usr/local)
	@install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin bin/berth bin/berth-keeper bin/berth-wings
	@$(GO) run ./hack/manual '$(VERSION)' $(DESTDIR)$(PREFIX)/share
	@echo "installed $(DESTDIR)$(PREFIX)/bin/berth"

deb: ## build the Debian package of this machine's architecture in dist
	@GO='$(GO)' VERSION='$(VERSION)' hack/release.sh deb dist

release: ## build binaries and packages for amd64 and arm64, SBOMs and checksums in dist
	@GO='$(GO)' VERSION='$(VERSION)' hack/release.sh release dist

run: ## get what is missing, build, and serve on :8070
	@$(GO) version >/dev/null # what gets Go installs packages, as docker.sh does
	@hack/docker.sh >/dev/null & engine=$$!; $(MAKE) --no-print-directory build; built=$$?; wait $$engine && [ $$built = 0 ] && exec bin/berth serve

test: build ## run every test, those on a real engine included
	@hack/docker.sh tools
	@hack/docker.sh >/dev/null
	@$(GO) vet ./...
	@$(GO) test -vet=off -count=1 -timeout 40m ./... # never cached: the engine, the kernel and the disk are what is tested

cover: ## run the tests and show the coverage of each package; .cache/cover.html shows the lines
	@hack/docker.sh tools
	@hack/docker.sh >/dev/null
	@mkdir -p .cache
	@$(GO) test -count=1 -timeout 40m -coverprofile=.cache/cover.out $(COVER)
	@$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	@$(GO) tool cover -func=.cache/cover.out | tail -n 1

engines: ## run the engine's suites on Docker 20.10, 26.1 and 28.5 (ENGINES="bookworm trixie sid")
	@hack/engines.sh

# The tests of the whole daemon that a cluster of one node cannot run: those that look into Docker, break it, or publish
# ports of this host; those of what the engine lacks (mounts of the host, limits of processes, OOM kills that are off,
# files that are open and unlinked); and those that need two nodes.
KUBE_DOCKER := TestContainerFieldsReachTheEngine|TestContainerOptions|TestDoctor|TestEgress.*|TestEngine.*|TestFailuresAreVisible|TestFullDisk|TestInterferenceFromOutside|TestMissingImage|TestNode|TestPullPolicies|TestRegistryOfEachImage|TestSecretsAreNotExposed|TestUnmanagedContainersAreUntouched|TestUploadLeavesSpaceForStore
KUBE_LACKS := TestDiskLimitCountsInodesAndUnlinkedFiles|TestMount.*|TestOOMKillFalse|TestRootLimit.*
KUBE_TWO := TestMachineIsLost|TestStorm
# What takes minutes there runs with BERTH_LONG=1.
KUBE_SLOW := TestCutTransfers|TestEveryPairOfVerbs|TestFiftyContainers|TestHandOver|TestKilledSchedules|TestKilledTransfers|TestPoolOfEveryPort|TestStartAfterKill

test-kube: ## run the suite of engines, and tests of the daemon, on a Kubernetes cluster (the first time that takes 10 minutes)
	@hack/docker.sh tools dockerd:docker.io openssl:openssl curl:curl runc:runc /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
	@$(GO) vet -tags cluster ./runtime/kubernetes ./cmd/keeper ./hack/e2e ./hack/deploy # gets what the cluster's network cannot
	@hack/kube/kube.sh with $(MAKE) --no-print-directory test-one-node
	@hack/kube/kube.sh with -n 2 $(GO) test -tags cluster -count=1 -p 1 -timeout 90m -run '^(TestLoss|$(KUBE_TWO))$$' ./runtime/kubernetes ./hack/e2e

test-one-node:
	@$(GO) test -tags cluster -count=1 -timeout 20m -skip TestLoss ./runtime/kubernetes
	@$(GO) test -tags cluster -count=1 -timeout 10m -run TestKubernetes ./hack/deploy
	@$(GO) test -tags cluster -count=1 -timeout 20m -skip '^($(KUBE_DOCKER)|$(KUBE_LACKS)|$(KUBE_TWO)$(if $(BERTH_LONG),,|$(KUBE_SLOW)))$$|TestStates/each/limited' ./hack/e2e

quota: ## test hard limits on ext4 and XFS with project quotas
	@hack/quota.sh

race: ## run the tests with the race detector
	@hack/docker.sh tools gcc:gcc gcc:libc6-dev
	@hack/docker.sh >/dev/null
	@CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 80m ./...

stress: ## run the tests of the loop, the plan and the store 50 times with the race detector
	@hack/docker.sh tools gcc:gcc gcc:libc6-dev
	@CGO_ENABLED=1 $(GO) test -race -count=50 -timeout 60m ./controller ./controller/container ./store/...

soak: ## attack berth with everything at once for SOAK (30m), and show what a good tenant notices
	@hack/docker.sh tools
	@hack/docker.sh >/dev/null
	@BERTH_SOAK=$(SOAK) $(GO) test -count=1 -v -timeout 3h ./hack/soak

fuzz: ## fuzz paths, archives, bodies and the rest for 60 s each, or FUZZTIME
	@GO='$(GO)' hack/fuzz.sh $(FUZZTIME)

lint: ## look for mistakes with golangci-lint, gofmt and lint-api
	@test -z "$$(gofmt -l . | tee -a /dev/stderr)"
	@$(GO) run $(LINT) run ./...
	@$(MAKE) --no-print-directory lint-api

lint-api: ## lint api/openapi.yaml with Spectral and Redocly
	@hack/panel/npm.sh --lint spectral lint --quiet -r spectral.yaml --fail-severity=hint $(CURDIR)/api/openapi.yaml
	@hack/panel/npm.sh --lint node redocly.mjs $(CURDIR)/api/openapi.yaml

ui: ## format the page, and copy its libraries from npm as hack/ui/package-lock.json names them
	@hack/ui/npm.sh node vendor.mjs
	@hack/ui/lint.sh --fix

bench: build ## measure berth against its floors, and print the table of goals (BENCH=regexp)
	@hack/docker.sh tools
	@hack/docker.sh >/dev/null
	@mkdir -p .cache && rm -f .cache/bench.txt
	@BERTH_BENCH_TABLE=$(CURDIR)/.cache/bench.txt $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -p 1 -timeout 120m ./...
	@echo; cat .cache/bench.txt 2>/dev/null || true

demo: ## play the main job against the running daemon
	@hack/demo.sh

check: lint race ## lint, and test with the race detector

verify: lint ## lint, check go.mod, race the core's tests, fuzz each target for 10 s: what CI runs besides the tests
	@hack/docker.sh tools gcc:gcc gcc:libc6-dev
	@$(GO) mod tidy -diff
	@CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 20m $(CORE)
	@$(MAKE) --no-print-directory fuzz FUZZTIME=10s

clean: ## remove what was built
	@rm -rf bin dist .cache
