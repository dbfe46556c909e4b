#!/usr/bin/env bash
# Runs the tests that fill a disk on a small one of its own: scripts/small-disk.sh [MiB] [go test flags]
# It is a file with an ext4, mounted as root; where that is not allowed the script says so and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
size=${1:-256}
shift || true
why() {
	echo "small-disk: NOT RUN: $1" >&2
	exit 0
}
[ "$(uname)" = Linux ] || why "loop devices are Linux's"
[ "$(id -u)" = 0 ] || why "only root may mount"
command -v mkfs.ext4 >/dev/null || why "no mkfs.ext4 (Debian: e2fsprogs)"
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
truncate -s "${size}M" "$work/image"
mkfs.ext4 -q -F "$work/image"
mkdir "$work/disk"
mount -o loop "$work/image" "$work/disk" 2>"$work/why" || why "mount: $(cat "$work/why")"
CAIRN_DISK=$work/disk go test -count=1 -timeout 1h -v -run 'TestFullDisk$' "$@" ./internal/lifetest
