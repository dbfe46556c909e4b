#!/usr/bin/env bash
# The long suites, for about the given time: scripts/long.sh 1h
# Life, kill -9 and large transactions at full size come first and take what they
# take; crash states, calls of the whole API and fuzzing share the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${1:-1h}
[[ $budget =~ ^[0-9]+(\.[0-9]+)?[hms]$ ]] || { echo "long: time $budget: write a number and h, m or s, like 1h or 90m" >&2; exit 2; }
seconds=$(awk -v t="$budget" 'BEGIN { n = substr(t, 1, length(t) - 1); u = substr(t, length(t)); print int(n * (u == "h" ? 3600 : u == "m" ? 60 : 1)) }')
start=$SECONDS
CAIRN_LONG=1 go test -count=1 -timeout 3h -v ./internal/lifetest
CAIRN_LONG=1 scripts/small-disk.sh 100
CAIRN_TRANSACTIONS=1000000 go test -count=1 -timeout 1h -v -run 'TestSerializable$' .
left=$(( seconds - (SECONDS - start) ))
[ "$left" -gt 60 ] || left=60
go test -count=1 -timeout 12h -v ./internal/crashtest -crash.long "$(( left / 3 ))s"
go test -count=1 -timeout 12h -v ./internal/metamorphic -metamorphic.long "$(( left / 3 ))s"
targets=$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' internal vfs . | sort -u | wc -l)
scripts/fuzz.sh "$(( left / 3 / targets + 1 ))s"
