#!/bin/sh
# Builds the laboratory with every native engine this machine has or may install.
#
#   scripts/bench-setup.sh OUTPUT    install what is missing, build OUTPUT (and OUTPUT.pure)
#   scripts/bench-setup.sh -tags     only print the build tags of what is there
#
# A missing library never fails the build: its rows say why they are absent.
# INSTALL=no installs nothing; CGO_ENABLED=0 builds the pure-Go rows only.
set -u
cd "$(dirname "$0")/../bench" || exit 1
GO=${GO:-go}
engine=github.com/cairndb/cairn/bench/internal/engine
tags= reasons=
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say() { echo "cairn-bench: $*" >&2; }

. ../scripts/install.sh

# links HEADER FLAGS: a program with the header compiles and links.
links() {
  printf '#include <stddef.h>\n#include <stdint.h>\n%s\nint main(void) { return 0; }\n' "${1:+#include <$1>}" >"$work/try.c"
  # shellcheck disable=SC2086 # flags are words
  $CC ${CGO_CFLAGS:-} "$work/try.c" -o "$work/try" ${CGO_LDFLAGS:-} $2 2>"$work/why"
}

# why_not shows the compiler's first complaint, without what quoting would trip on.
why_not() {
  { grep -m1 -E 'error|cannot find|No such|not found|could not' "$work/why" || grep -m1 -v '^#' "$work/why"; } |
    tr -d "'\"\`" | cut -c1-160
}

# absent VARIABLE ROWS REASON: the rows' reason goes into the program.
absent() {
  clean=$(printf '%s' "$3" | LC_ALL=C tr -cd 'A-Za-z0-9 .,:;()/_+=-')
  reasons="$reasons -X '$engine.$1=$clean'"
  say "$2 absent: $clean"
}

# library TAG VARIABLE ROWS PACKAGE HEADER FLAGS
library() {
  if ! links "$5" "$6"; then
    [ -n "$installs" ] || return 0
    install "$4" || { absent "$2" "$3" "$failed"; return 0; }
    links "$5" "$6" || { absent "$2" "$3" "$4 is installed, but does not link: $(why_not)"; return 0; }
  fi
  tags="$tags,$1"
}

# cxx: RocksDB's binding links the C++ library, which comes with g++, not with gcc.
cxx() {
  links "" -lstdc++ && return 0
  [ -n "$installs" ] || return 1
  install "libstdc++-$($CC -dumpversion | cut -d. -f1)-dev" && links "" -lstdc++
}

# The rows and what they need: tag, variable, rows, package, header, flags.
find_libraries() {
  tags=native_lmdb # its binding brings the C source
  library native_leveldb whyNoLevelDB leveldb libleveldb-dev leveldb/c.h -lleveldb
  if cxx; then
    library native_rocksdb whyNoRocksDB rocksdb librocksdb-dev rocksdb/c.h \
      "-lrocksdb -lstdc++ -lm -lz -lsnappy -llz4 -lzstd"
  else
    absent whyNoRocksDB rocksdb "the C++ library does not link: ${failed:-$(why_not)}"
  fi
  library native_tokyocabinet whyNoTokyoCabinet "tokyo-hash tokyo-btree" libtokyocabinet-dev tchdb.h -ltokyocabinet
}

variable() {
  case $1 in
  native_lmdb) echo whyNoLMDB lmdb ;;
  native_leveldb) echo whyNoLevelDB leveldb ;;
  native_rocksdb) echo whyNoRocksDB rocksdb ;;
  native_tokyocabinet) echo whyNoTokyoCabinet "tokyo-hash tokyo-btree" ;;
  esac
}

pure() {
  for tag in native_lmdb native_leveldb native_rocksdb native_tokyocabinet; do
    # shellcheck disable=SC2046 # two words
    set -- "$1" $(variable $tag)
    absent "$2" "${3}${4:+ $4}" "$1"
  done
  rm -f "$out.pure"
  CGO_ENABLED=0 $GO build -ldflags "$reasons" -o "$out" ./cmd/cairn-bench
}

# pure_half: rows of pure Go run in OUTPUT.pure, without the C libraries' memory.
pure_half() {
  CGO_ENABLED=0 $GO build -o "$out.pure" ./cmd/cairn-bench || exit 1
  reasons="$reasons -X '${engine%engine}harness.pureSum=$(sha256sum "$out.pure" | cut -d' ' -f1)'"
}

build() { CGO_ENABLED=1 $GO build -tags "$1" -ldflags "$reasons" -o "$2" ./cmd/cairn-bench 2>"$work/why"; }

# without_broken leaves out the tags that do not build by themselves.
without_broken() {
  good=
  for tag in $(echo "$tags" | tr , ' '); do
    if build "$tag" "$work/one"; then good="$good,$tag"; continue; fi
    why=$(why_not)
    # shellcheck disable=SC2046 # two words
    set -- $(variable "$tag")
    absent "$1" "${2}${3:+ $3}" "does not build: $why"
  done
  tags=${good#,}
}

CC=$($GO env CC) || exit 1
if [ "${1:-}" = -tags ]; then
  installs=
  [ "$($GO env CGO_ENABLED)" = 1 ] && links "" "" && find_libraries 2>/dev/null
  echo "${tags#,}"
  exit 0
fi
out=${1:?which file to build}
case $out in /*) ;; *) out=../$out ;; esac
installs=yes
if [ "${CGO_ENABLED:-1}" = 0 ]; then pure "built with CGO_ENABLED=0"; exit; fi
if ! links "" ""; then pure "no C compiler ($CC: $(why_not))"; exit; fi
find_libraries
pure_half
build "$tags" "$out" && exit 0
without_broken
[ -n "$tags" ] && build "$tags" "$out" && exit 0
cat "$work/why" >&2
pure "does not build with cgo"
