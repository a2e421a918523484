# shellcheck shell=bash
# What the scripts share. Source it; it starts nothing.

# ROOT is the checkout; CACHE holds all that is downloaded or installed for it, outside the tree.
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast"
export ROOT CACHE

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# have NAME…: whether every command is there.
have() {
  local name
  for name in "$@"; do command -v "$name" >/dev/null 2>&1 || return 1; done
}

# as_root CMD…: runs it with root's rights, or says which command a person would have to run.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    say "needs root: $*"
    return 1
  fi
}

# apt_install PACKAGE…: from Debian's or Ubuntu's packages; its output goes to a log that is shown on failure.
apt_install() {
  have apt-get || {
    say "no apt-get on this machine; install by hand: $*"
    return 1
  }
  mkdir -p "$CACHE"
  local log="$CACHE/apt.log"
  say "installing $*"
  if ! locked apt apt_quietly "$@" >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    return 1
  fi
}

apt_quietly() {
  apt_once "$@" && return
  as_root apt-get update -q && apt_once "$@"
}

apt_once() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; }

# locked NAME CMD…: runs CMD while no other script holds NAME.
locked() {
  local name="$1"
  shift
  mkdir -p "$CACHE/locks"
  if have flock; then
    (flock 9 && "$@") 9>"$CACHE/locks/$name"
  else
    "$@"
  fi
}

# debian_mirror: the Debian mirror that this machine's own apt sources name.
debian_mirror() {
  local found
  found="$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    grep -v '^#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)"
  found="${found%% *}"
  [ -n "$found" ] || die "apt's sources name no Debian mirror"
  printf '%s\n' "${found%/}"
}

# free_port: a port of the loopback that nothing listens on, below the range that outgoing connections use.
free_port() {
  local port
  for _ in $(seq 50); do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12700))
    listens "$port" || {
      printf '%s\n' "$port"
      return
    }
  done
  die "found no free port"
}

# listens PORT: whether something accepts connections there.
listens() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# wait_until SECONDS CMD…: polls CMD until it succeeds; fails when the time is over.
wait_until() {
  local tries=$(($1 * 10))
  shift
  for _ in $(seq "$tries"); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

# stop_pid PID: asks the process to end, insists after ten seconds.
stop_pid() {
  kill "$1" 2>/dev/null || return 0
  wait_until 10 gone "$1" || kill -9 "$1" 2>/dev/null || true
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# install_npm FOLDER: the packages of a folder of this tree, by its lockfile, in the cache; prints where.
install_npm() {
  have node npm || apt_install nodejs npm || return 1
  local from="$ROOT/$1" key to
  key="$(cksum <"$from/package-lock.json" | tr -s ' ' -)"
  to="$CACHE/npm/${1//\//-}-$key"
  [ -f "$to/.installed" ] || locked "npm-${1//\//-}" npm_ci "$from" "$to" >&2 || return 1
  printf '%s\n' "$to"
}

npm_ci() {
  [ -f "$2/.installed" ] && return
  say "installing $(basename "$1") from npm"
  rm -rf "$2" && mkdir -p "$2" || return 1
  cp "$1"/package.json "$1"/package-lock.json "$1"/.npmrc "$2"/ || return 1
  npm ci --prefix "$2" --no-audit --no-fund >"$2/npm.log" 2>&1 || {
    tail -n 15 "$2/npm.log" >&2
    return 1
  }
  touch "$2/.installed"
}

# install_venv NAME REQUIREMENTS: a Python environment in the cache with exactly these packages; prints where.
install_venv() {
  have python3 || apt_install python3 python3-venv || return 1
  local to
  to="$CACHE/venv/$1-$(cksum <"$2" | tr -s ' ' -)"
  [ -f "$to/.installed" ] || locked "venv-$1" make_venv "$1" "$2" "$to" >&2 || return 1
  printf '%s\n' "$to"
}

make_venv() {
  [ -f "$3/.installed" ] && return
  say "installing the Python packages of $1"
  rm -rf "$3" && mkdir -p "$(dirname "$3")" || return 1
  python3 -m venv "$3" >/dev/null 2>&1 || { apt_install python3-venv && rm -rf "$3" && python3 -m venv "$3"; } || return 1
  "$3/bin/pip" install -q --disable-pip-version-check -r "$2" >&2 || return 1
  touch "$3/.installed"
}
