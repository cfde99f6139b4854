#!/bin/bash
# Prints the path of a Go that can build Kubernetes.
#
# usage: go.sh
# Any Go from 1.21 on will do: it fetches the newer one that a go.mod names from the module proxy.
# Order: $GO, the PATH, the usual directories, the one kept in our cache. If there is none (Debian 12
# has 1.19), the Debian packages of a newer suite are fetched and unpacked into the cache, never
# installed: a private apt state whose only source is the machine's own entry with its suite replaced.
set -euo pipefail

CACHE=${COSCHED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cosched}
KEPT=$CACHE/go

say() { echo "k8s build: $*" >&2; }
die() {
  echo "k8s build: error: $*" >&2
  exit 1
}

good() { # good PATH: is it Go 1.21 or newer?
  [ -n "$1" ] && [ -x "$1" ] && GOTOOLCHAIN=local "$1" version 2>/dev/null | grep -Eq 'go1\.(2[1-9]|[3-9][0-9])|go[2-9]'
}

find_go() {
  local candidate
  for candidate in "${GO:-}" "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-*/bin/go "$KEPT"/usr/lib/go-*/bin/go; do
    if good "$candidate"; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# debian_source SUITE: the machine's own Debian archive entry, with SUITE, in one-line form.
debian_source() {
  local uri key=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u | sed -n '/\/debian\/*$/{p;q}')
  [ -n "$uri" ] || return 1
  if [ -r "$key" ]; then echo "deb [signed-by=$key] $uri $1 main"; else echo "deb $uri $1 main"; fi
}

fetch_go() { # fetch_go SUITE STATE-DIR: unpacks that suite's Go into $KEPT.new
  local suite=$1 state=$2 options package
  mkdir -p "$state"/{lists/partial,cache/archives/partial,etc,packages}
  debian_source "$suite" >"$state/etc/suite.list"
  [ -s "$state/etc/suite.list" ] || return 1
  options=(-qq -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$state/etc" -o "Dir::State::lists=$state/lists"
    -o "Dir::Cache=$state/cache" -o "Acquire::Languages=none" -o "APT::Sandbox::User=")
  apt-get "${options[@]}" update >&2 || return 1
  # golang-go depends on golang-1.xx-go, which has the compiler; its -src package the library.
  package=$(apt-cache "${options[@]}" depends golang-go 2>/dev/null | sed -n 's/.*Depends: \(golang-1\.[0-9]*-go\)$/\1/p' | sort -V | tail -n 1)
  [ -n "$package" ] || return 1
  (cd "$state/packages" && apt-get "${options[@]}" download "$package" "${package%-go}-src") >&2 || return 1
  for package in "$state"/packages/*.deb; do dpkg -x "$package" "$KEPT.new"; done
}

main() {
  local suite state
  find_go && return 0
  if ! command -v apt-get >/dev/null; then die "no Go from 1.21 on: install one, or name it by GO=/path/to/go, or set KUBEBUILDER_ASSETS"; fi
  mkdir -p "$CACHE"
  state=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$state' '$KEPT.new'" EXIT
  for suite in bookworm-backports trixie forky sid; do
    say "no Go from 1.21 on here: trying the packages of Debian $suite, unpacked into the cache"
    rm -rf "$KEPT.new"
    if fetch_go "$suite" "$state/$suite" && mkdir -p "$KEPT.new" && rm -rf "$KEPT" && mv "$KEPT.new" "$KEPT" && find_go; then return 0; fi
  done
  die "no Go from 1.21 on and none in the Debian suites tried: install one, or name it by GO=/path/to/go, or set KUBEBUILDER_ASSETS"
}

main
