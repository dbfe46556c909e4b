#!/bin/sh
# Opens the laboratory's HTML report in a real browser and looks at it: layout on a
# desktop, a phone and paper, contrast, keyboard, console, network.
#
# Installs Debian's chromium where it is missing and may be (as in install.sh). Where
# there is no browser it says so, and the tests skip.
set -u
cd "$(dirname "$0")/../bench" || exit 1
GO=${GO:-go}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say() { echo "bench-browser: $*" >&2; }

. ../scripts/install.sh

# browser: one of the names the tests look for is here and starts.
browser() {
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && timeout 60 "$name" --headless --no-sandbox --user-data-dir="$work/profile" \
      --dump-dom about:blank >/dev/null 2>&1 && return 0
  done
  return 1
}

look() { $GO test -count=1 -timeout 5m -run '^TestInABrowser$' "$@" ./internal/report/html; }

# found: there is a browser, installed now if need be; if not, $failed says why.
found() {
  browser && return 0
  install chromium || return 1
  failed="chromium is installed, but does not start"
  browser
}

if found; then
  CAIRN_BENCH_BROWSER=1 look
  exit
fi
say "**********************************************************************"
say "THE HTML REPORT WAS NOT LOOKED AT IN A BROWSER: $failed"
say "**********************************************************************"
look -v
