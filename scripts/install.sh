# Read by scripts that install Debian packages where they may. Not a program.
#
# Before: $work, a directory for notes, and say, which tells the user.
# INSTALL=no installs nothing; TIME_LIMIT is the seconds for all installations together.
TIME=${TIME_LIMIT:-300}
began=$(date +%s)
updated=

# may_install sets $as to what apt-get needs before it, or $refused to why not.
may_install() {
  as= refused=
  if [ "${INSTALL:-yes}" = no ]; then refused="INSTALL=no"
  elif ! command -v apt-get >/dev/null; then refused="no apt-get here"
  elif [ "$(id -u)" = 0 ]; then return 0
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as="sudo -n"
  else refused="neither root nor sudo without a password"
  fi
  [ -z "$refused" ]
}

# apt runs apt-get within the time that is left.
apt() {
  left=$((TIME - $(date +%s) + began))
  [ "$left" -gt 0 ] || { echo "E: out of time ($TIME s)" >"$work/apt"; return 1; }
  # shellcheck disable=SC2086 # $as is words
  timeout "$left" $as env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=60 \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@" >"$work/apt" 2>&1 </dev/null
  status=$?
  [ "$status" != 124 ] || echo "E: out of time ($TIME s)" >"$work/apt"
  return "$status"
}

# install PACKAGE: one line says what came of it, or $failed why not.
install() {
  may_install || { failed="$1 is not installed ($refused)"; return 1; }
  apt install --no-install-recommends "$1" && { say "installed $1"; return 0; }
  if [ -z "$updated" ]; then
    updated=yes
    apt update && apt install --no-install-recommends "$1" && { say "installed $1"; return 0; }
  fi
  failed="$1 cannot be installed: $(grep -m1 '^E:' "$work/apt" | cut -c1-160)"
  return 1
}
