# Everything sets itself up: Go and a C compiler are all a machine needs.
GO ?= go
TIME ?= 10m

.PHONY: test check long bench bench-full bench-native bench-browser lint race cross fuzz mutants windows FORCE

test: ## what every change needs
	$(GO) test -timeout 15m ./...
	cd cmd/cairn && $(GO) test ./...
	cd bench && $(GO) test ./...

check: lint race cross bench-native bench-browser ## style, races, assertions, other platforms, the report in a browser
	@echo "check: all passed"

lint:
	@bad=$$(gofmt -l .); test -z "$$bad" || { echo "gofmt: $$bad"; exit 1; }
	$(GO) vet ./... 
	cd cmd/cairn && $(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(GO) test -count=1 ./internal/lint

race: ## -race turns on the assertions of internal/invariants too
	$(GO) test -short -race -timeout 20m $$($(GO) list ./... | grep -v internal/crashtest)
	$(GO) test -race -timeout 20m ./internal/crashtest -run 'TestCrash|TestFaults|TestOracle' -crash.images=20 -crash.faults=25

bench-native: ## the native engines of the laboratory, as far as their libraries are here
	tags=$$(GO=$(GO) scripts/bench-setup.sh -tags) && echo "bench-native: $${tags:-none here}" && cd bench && \
	  $(GO) vet -tags "$$tags" ./... && $(GO) test -timeout 10m -tags "$$tags" ./internal/engine ./internal/tokyo ./cmd/cairn-bench

bench-browser: ## the laboratory's HTML report in Chromium, installed where it may be (INSTALL=no: never)
	GO=$(GO) scripts/bench-browser.sh

cross:
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=linux GOARCH=386 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=plan9 GOARCH=amd64 $(GO) vet ./...
	for t in darwin/arm64 windows/amd64 linux/arm64 linux/386; do \
	  (cd cmd/cairn && GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null . ) || exit 1; done
	GOARCH=386 $(GO) test -short -timeout 15m ./internal/base ./internal/frame ./internal/block ./internal/layout ./internal/table ./internal/wal ./internal/memtable ./internal/manifest .

# Left out: Wine 10 keeps the name of an open file that was removed, renames nothing onto an open file, and has no symbolic links that
# can be read; LOCK cannot be watched on Windows; and names of files are converted there, which allocates.
WINE ?= wine
windows: ## the engine's tests, built for Windows and run by Wine 10 or later (Debian 13: wine wine64), WINE: how it is called
	@v=$$($(WINE) --version) || { echo "windows: SKIPPED: no Wine here"; exit 2; }; echo "windows: $$v"
	GOOS=windows GOARCH=amd64 $(GO) test -short -p 1 -timeout 30m -exec "$(WINE)" \
	  -skip 'Conformance/RemoveOpenFile|Conformance/RenameReplaces|Conformance/LockWatched|TestOpenRefusesSymlink|TestForeignNamesOfSegmentsToCome|TestPutsHardlyAllocate' \
	  $$($(GO) list ./... | grep -vE 'internal/(lint|mutants|crashtest|lifetest|metamorphic)')

long: ## long suites: make long TIME=1h
	scripts/long.sh $(TIME)

fuzz: ## every fuzz target for a while: make fuzz TIME=5m
	scripts/fuzz.sh $(TIME)

mutants: ## remove each sync and each checksum check in turn; some test must fail
	$(GO) test -v -timeout 4h ./internal/mutants -run TestMutants -mutants.on -mutants.table mutants.md

.bin/cairn: FORCE ## the command line
	cd cmd/cairn && CGO_ENABLED=0 $(GO) build -o ../../.bin/cairn .

# Built first, not `go run`: that does not pass signals on to what it runs.
.bin/cairn-bench: FORCE ## the laboratory; installs the native engines where it may (INSTALL=no: never)
	GO=$(GO) scripts/bench-setup.sh .bin/cairn-bench

bench: .bin/cairn-bench ## the comparison, quick: within ten minutes
	.bin/cairn-bench run -quick

bench-full: .bin/cairn-bench ## the comparison with the large sets; states its duration first; goes on if interrupted before
	.bin/cairn-bench run -full -continue .bin/cairn-bench-full.json
	mv .bin/cairn-bench-full.json cairn-bench-full.json

FORCE:
