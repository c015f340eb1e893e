# Orrery. `make` prints this menu; continuous integration calls only these targets.

GO       ?= go
SUMS     ?= .ci/out/sums
FUZZTIME ?= 1m
CUTS     ?= 10000
KILLS    ?= 200
RUNS     ?= 20
ITEMS    ?= 2000000
SOAK     ?= 30m
DATA     ?= ./data
PKGS     ?= ./...
export CGO_ENABLED ?= 0
# gin without MessagePack, which no API here speaks: 9 MB of the binary and its compiling. net/http without HTTP/2, which no
# door offers: 0.5 MB. Every go command below has the same tags, so that what is tested is what is built. A plain
# `go build ./cmd/orrery` works too and is only larger.
TAGS = nomsgpack,nethttpomithttp2
export GOFLAGS := $(filter-out -tags=%,$(shell $(GO) env GOFLAGS)) -tags=$(TAGS)

# Checks and tests are compiled without the profile of cmd/orrery. With it, go vet, go test and the linters would each
# compile and examine all packages two or three times: for the program, for its tests, and for all others.
PLAIN = -pgo=off

TALLY = $(GO) run ./internal/tally -sums $(SUMS)
# Test binaries without tables for debuggers: half the time to link each.
LINK = -ldflags '-s -w'
# What `make vet` has examined, go test need not examine again.
VETTED = -vet=off $(PLAIN) $(LINK)
# go test doesn't know whether a cluster is as it was: its cache must not answer for one.
CLUSTER = $(if $(ORRERY_TEST_PD),-count=1)
# The race detector needs a C compiler; everything else needs only Go.
CC_FOUND := $(shell command -v cc gcc clang 2>/dev/null | head -1)

.PHONY: menu packages test-packages stopwatch release build build-tikv build-copy test test-tikv core-tikv engine-tikv race vet lint analysis tested conformance fuzz soak spill torture linearize conformance-tikv chaos-tikv bench run demo clean cross

menu:
	@echo 'make build        static binary ./bin/orrery'
	@echo 'make build-tikv   the same with the engine over TiKV (orrery-tikv serve --engine tikv://..): ./bin/orrery-tikv'
	@echo 'make build-copy   what `orrery copy` runs, with the official clients of all APIs (downloads modules): ./bin/orrery-copy'
	@echo 'make release      archives of both binaries for all systems in ./dist, with checksums and the modules that they hold'
	@echo 'make packages     image, deb, rpm, npm, wheel, formula and chart in ./dist/packages (KINDS=.. TARGETS=..; downloads modules)'
	@echo 'make test-packages install each of them as its users do (needs dpkg, npm, pip, mvn and their registries; root)'
	@echo 'make stopwatch    a newcomer with cold caches: clone, make run, first answer (needs the registry)'
	@echo 'make run          build, then serve with data in $(DATA), as strict as the service (FLAGS="--strict none": not)'
	@echo 'make demo         build, then serve sample data in memory'
	@echo 'make test         vet, all Go tests, race detector on core, official Go clients, engine over TiKV (simulated)'
	@echo 'make test-tikv    the engine over TiKV and orrery-tikv, modules of their own (downloads modules; ORRERY_TEST_PD: a cluster to use too)'
	@echo 'make race         race detector on core'
	@echo 'make vet          gofmt, go vet, import rules, rules for text'
	@echo 'make lint         the same, staticcheck, dead code (downloads the two tools)'
	@echo 'make cross        whether all code compiles on CROSS=.. (all systems), type-checked without compiling it'
	@echo 'make conformance  official clients in other languages (installs them)'
	@echo 'make conformance-tikv  the clients of Node with orrery-tikv over the cluster of ORRERY_TEST_PD (host:port,host:port)'
	@echo 'make chaos-tikv   processes that are killed and paused, over the store that the program of ORRERY_TEST_CLUSTER starts'
	@echo 'make fuzz         every fuzz target for FUZZTIME=$(FUZZTIME)'
	@echo 'make spill        sort and group ITEMS=$(ITEMS) items with temporary files, one query alone and ten at once'
	@echo 'make torture      CUTS=$(CUTS) power cuts and KILLS=$(KILLS) kills of stores that are written to, backed up, restored'
	@echo 'make linearize    RUNS=$(RUNS) runs of three APIs on the same items, with kills: what clients are told must be one history'
	@echo 'make soak         SOAK=$(SOAK) of mixed load through all four doors; memory and reads must stay as they are'
	@echo 'make bench        Go benchmarks of PKGS=$(PKGS)'
	@echo 'make clean        remove ./bin and test leftovers (never data)'

# The first build downloads modules and compiles some 500 packages: what it is at is shown in one line. The argument is
# the go command.
define shown
@show() { :; }; if [ -t 1 ]; then show() { printf '\r\033[K%.78s' "$$1"; }; fi; \
	{ $(1) 2>&1; echo "done $$?"; } | { \
	got=0; made=0; while IFS= read -r line; do \
		case $$line in \
		'done '*) status=$${line#done } ;; \
		'go: downloading '*) got=$$((got+1)); show "$$got modules downloaded: $${line#go: downloading }" ;; \
		*[!a-zA-Z0-9./_~-]*) show; echo "$$line" ;; \
		*) made=$$((made+1)); show "$$made packages compiled: $$line" ;; \
		esac; \
	done; show; \
	if [ $$status = 0 ] && [ $$((got+made)) != 0 ]; then \
		echo "built: $$got modules downloaded, $$made packages compiled"; \
	fi; exit $$status; }
endef

BIN   = bin
BUILT = -trimpath
build:
	$(call shown,$(GO) build -v $(BUILT) -ldflags '-s -w' -o $(BIN)/orrery ./cmd/orrery)

# The binary with the engine over TiKV is a module of its own, because that engine's client brings many other modules.
# It has the profile of orrery.
build-tikv:
	$(call shown,$(GO) build -C cmd/orrery-tikv -v -trimpath -ldflags '-s -w' -pgo=../orrery/default.pgo -o ../../bin/orrery-tikv .)

# The program behind `orrery copy` is a module of its own, because it holds the official clients.
build-copy:
	$(call shown,$(GO) build -C cmd/orrery-copy -v -trimpath -ldflags '-s -w' -o ../../bin/orrery-copy .)

# One archive for each of TARGETS (os/arch ..), which are all systems by default.
release:
	$(GO) run ./internal/release -tags '$(TAGS)' $(TARGETS)

# The packages are made by a module of its own, cmd/orrery/packaging, because its libraries are many.
PACKAGING = $(GO) run -C cmd/orrery/packaging
packages:
	GOFLAGS= $(PACKAGING) . -root $(CURDIR) -out $(CURDIR)/dist/packages -tags '$(TAGS)' $(if $(KINDS),-kinds $(KINDS)) $(TARGETS)

test-packages: build
	GOFLAGS= ORRERY_BIN=$(CURDIR)/bin/orrery $(GO) test -C cmd/orrery/packaging -count=1 -v ./...

stopwatch:
	ORRERY_STOPWATCH=1 $(GO) test -count=1 -timeout 30m -run '^TestStopwatch$$' -v ./cmd/orrery/stopwatch

run: build
	./bin/orrery serve --data $(DATA) $(FLAGS)

demo: build
	./bin/orrery demo $(FLAGS)

# The clients' tests wait for a third of their time, so three packages of them run at a time, and the copies beside them.
test: vet
	@mkdir -p $(dir $(SUMS)) && rm -f $(SUMS)
	@status=0; \
	$(TALLY) -label 'go tests' -- $(VETTED) ./... || status=1; \
	$(MAKE) --no-print-directory race || status=1; \
	rm -f $(SUMS)-tikv; \
	$(MAKE) --no-print-directory core-tikv ORRERY_TEST_PD= || status=1; \
	$(MAKE) --no-print-directory engine-tikv ORRERY_TEST_PD= >$(dir $(SUMS))tikv.log 2>&1 & tikv=$$!; \
	if [ -f conformance/go.mod ]; then \
		$(GO) vet -C conformance $(PLAIN) ./... || status=1; \
		$(GO) vet -C cmd/orrery-copy $(PLAIN) ./... || status=1; \
		$(TALLY) -C cmd/orrery-copy -label 'copies by the official clients' -- $(VETTED) ./... & copies=$$!; \
		$(TALLY) -C conformance -label 'official Go clients' -- $(VETTED) -p 3 ./... || status=1; \
		wait $$copies || status=1; \
	fi; \
	wait $$tikv || status=1; cat $(dir $(SUMS))tikv.log; \
	$(GO) run ./internal/tally -sums $(SUMS)-tikv -print || status=1; \
	$(GO) run ./internal/tally -sums $(SUMS) -print || status=1; \
	exit $$status

# The engine over TiKV is a module of its own, so that no build needs the modules of its client. `make test` runs this
# with the simulation of TiKV's client, and `.ci/cluster` with a cluster.
# The core's tests of all engines run on it too: an overlay makes a file of the module one of the core's tests. They wait
# for the network half of the time, so two halves of them run side by side. SLOW=1 runs those of them that take longer.
# On the simulation they come before all others, and take ten seconds; a cluster is slower than all of them together.
listed = $(shell grep '^Test' core/kv/tikvkv/testdata/$(1).txt | paste -sd'|')
TALLY_TIKV = $(GO) run ./internal/tally -sums $(SUMS)-tikv $(if $(ORRERY_TEST_PD),-again)
test-tikv:
	@mkdir -p $(dir $(SUMS)) && rm -f $(SUMS)-tikv; status=0; \
	$(MAKE) --no-print-directory -k $(if $(ORRERY_TEST_PD),-j2) core-tikv engine-tikv || status=1; \
	$(GO) run ./internal/tally -sums $(SUMS)-tikv -print || status=1; \
	exit $$status

core-tikv:
	$(GO) vet -C core/kv/tikvkv $(PLAIN) ./...
	@status=0; \
	tests=$$(awk '/^func Test/ { name = substr($$2, 1, index($$2, "(") - 1) } /onEngines\(t|range engines/ { print name }' \
		core/*_test.go | sort -u $(if $(SLOW),,| grep -vxE '$(call listed,slow)')); \
	half() { \
		$(TALLY_TIKV) -C core/kv/tikvkv -label "$$1" -- $(VETTED) $(or $(CLUSTER),-parallel 6) -overlay testdata/core.json \
			-run "^($$(echo "$$tests" | grep $$2 '^Test[A-N]' | paste -sd'|'))$$" github.com/orrerydb/orrery/core; \
	}; \
	half 'core over TiKV' -e & core=$$!; \
	half 'the other half of it' -ve || status=1; \
	wait $$core || status=1; \
	exit $$status

engine-tikv:
	$(GO) vet -C cmd/orrery-tikv $(PLAIN) ./...
	@status=0; \
	ORRERY_TEST_CLUSTER= $(TALLY_TIKV) -C core/kv/tikvkv -label 'engine over TiKV' -- $(VETTED) $(CLUSTER) -skip '$(call listed,differences)' ./... & \
	engine=$$!; \
	$(TALLY_TIKV) -C cmd/orrery-tikv -label 'orrery-tikv' -- $(VETTED) $(CLUSTER) ./... || status=1; \
	wait $$engine || status=1; \
	exit $$status

# The tests of the package core, which come one after the other, run in two halves side by side, and the other packages
# beside the longer one. All is compiled before, or each half would compile it. GORACE: without the second that each
# program with the detector waits for at its end. pebblegozstd: the compression in Go, as it is built, and not that in C.
HALF  = '^Test[A-P]'
RACER = -race $(PLAIN) -tags $(TAGS),invariants,pebblegozstd
RACED = $(RACER) -vet=off $(LINK) -timeout 20m
race:
ifeq ($(CC_FOUND),)
	@echo 'race: no C compiler here, the race detector was not run'
else
	@mkdir -p $(dir $(SUMS))
	@export CGO_ENABLED=1 GORACE=atexit_sleep_ms=0; status=0; \
	$(GO) build $(RACER) ./core/... || exit 1; \
	$(TALLY) -label 'core with the race detector and assertions' -- $(RACED) -run $(HALF) ./core & half=$$!; \
	$(TALLY) -label 'the other half of it' -- $(RACED) -skip $(HALF) ./core || status=1; \
	$(TALLY) -label 'what core is made of, too' -- $(RACED) $$($(GO) list ./core/... | grep -v '/core$$') || status=1; \
	wait $$half || status=1; \
	exit $$status
endif

# What needs nothing but Go and the modules that are built. `make test` begins with it.
vet:
	@bad=$$(gofmt -l cmd core internal sqlapi tableapi graphapi mongoapi conformance 2>/dev/null); \
	if [ -n "$$bad" ]; then echo "gofmt: $$bad"; exit 1; fi
	$(GO) vet $(PLAIN) ./...
	$(GO) test ./internal/imports ./internal/style

lint: vet analysis

# The tools' versions are in internal/lint, a module of its own: a build or test downloads none of it. Dead code is what
# neither the binaries nor any test reaches; orrerytest is for the tests of others, and has its own in conformance.
analysis:
	@$(MAKE) --no-print-directory cross CROSS='windows/amd64 darwin/arm64' MODULES=.
	$(GO) build -C internal/lint -o $(CURDIR)/.ci/out/lint/ tool
	GOFLAGS='$(GOFLAGS) $(PLAIN)' .ci/out/lint/staticcheck ./...
	@for module in conformance core/kv/tikvkv cmd/orrery-tikv cmd/orrery-copy; do \
		(cd $$module && GOFLAGS='$(GOFLAGS) $(PLAIN)' $(CURDIR)/.ci/out/lint/staticcheck ./...) || exit 1; \
	done
	@dead=$$(GOFLAGS='$(GOFLAGS) $(PLAIN)' .ci/out/lint/deadcode -test ./... | grep -v ^cmd/orrery/orrerytest/); if [ -n "$$dead" ]; then echo "$$dead"; exit 1; fi

# Whether all code, tests included, compiles on other systems, without compiling it: a system takes 4 s of CPU a module.
CROSS   ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
MODULES ?= . conformance core/kv/tikvkv cmd/orrery-tikv cmd/orrery-copy cmd/orrery/packaging
cross:
	@status=0; for module in $(MODULES); do \
		$(GO) run ./internal/crosscheck -C $$module $(CROSS) || status=1; \
	done; exit $$status

# What tests run as a program is made of what they have compiled, without the profile: with it, compiling takes 180 s of
# CPU more. The reference suites use it, too.
TESTED = $(CURDIR)/.ci/out
tested:
	@$(MAKE) --no-print-directory build BIN=$(TESTED) BUILT=$(PLAIN)

conformance: tested
	@ORRERY_BIN=$(TESTED)/orrery .ci/clients

conformance-tikv:
	$(GO) build -C cmd/orrery-tikv $(PLAIN) $(LINK) -o $(TESTED)/orrery-tikv .
	@ORRERY_BIN=$(TESTED)/orrery-tikv ORRERY_ENGINE='tikv://$(ORRERY_TEST_PD)/%s?commit=2pc' .ci/clients js

# A short TestChaos. The processes fail, not the store: what becomes of three stores is tested by hand, for minutes.
chaos-tikv:
	@mkdir -p $(dir $(SUMS)) && rm -f $(SUMS)-chaos
	@status=0; tally='$(GO) run ./internal/tally -sums $(SUMS)-chaos'; \
	ORRERY_CHAOS_STORES=1 ORRERY_CHAOS_SECONDS=12 ORRERY_CHAOS_FAULTS='process killed,process paused' \
		$$tally -C core/kv/tikvkv -label 'processes that fail, over TiKV' -- $(VETTED) -count=1 -run '^TestChaos$$' ./chaos || \
		status=1; \
	$$tally -print || status=1; \
	exit $$status

fuzz:
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

spill:
	ORRERY_SPILL=$(ITEMS) $(GO) test -count=1 -timeout 2h -run '^TestSpillAtScale$$' -v ./cmd/orrery/server

torture:
	ORRERY_TORTURE=$(CUTS) $(GO) test -count=1 -timeout 3h -run '^TestPowerLoss$$' -v ./core
	ORRERY_KILLS=$(KILLS) $(GO) test -count=1 -timeout 3h -v ./cmd/orrery/crashtest

linearize:
	cd conformance && ORRERY_LINEARIZE=$(RUNS) $(GO) test -count=1 -timeout 6h -v ./linearize

soak:
	cd conformance && ORRERY_SOAK=$(SOAK) $(GO) test -count=1 -timeout 6h -run '^TestSoak$$' -v ./soak

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1s $(PKGS)

clean:
	rm -rf bin .ci/out
	find . -name '*.test' -type f -delete
