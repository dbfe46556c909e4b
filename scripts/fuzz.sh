#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each: scripts/fuzz.sh 5m [package]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-1m}
only=${2:-}
ran=
packages=$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u)
for pkg in $packages; do
  [ -z "$only" ] || [ "$pkg" -ef "$only" ] || continue
  for target in $(grep -ohE '^func (Fuzz[A-Za-z0-9_]+)' "$pkg"/*_test.go | awk '{print $2}' | sort -u); do
    echo "== $pkg $target $time"
    (cd "$pkg" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x . | tail -n 3)
    ran=yes
  done
done
[ -n "$ran" ] || { echo "fuzz: no target in ${only:-any package}" >&2; exit 1; }
