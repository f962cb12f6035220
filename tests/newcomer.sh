#!/usr/bin/env bash
# Checks the README's promise to a newcomer: the demo runs two million ticks and ends by itself, and the command that it
# prints verifies the run by a replay. The check leaves no files.
#
#   tests/newcomer.sh BINARY    any build of `warptape`; the check covers the commands, not their speed

set -uo pipefail
readonly ticks=2000000
binary=$(realpath "$1") || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
exec </dev/null

fail() {
  printf 'newcomer: %s\n' "$*"
  exit 1
}

TMPDIR=$folder "$binary" demo --ticks "$ticks" --data warptape-demo >demo 2>&1
status=$?
tail -n 40 demo
((status == 0)) || fail "demo exits $status, not 0"

# The last line that names the command, without colours and without the quotes around it.
command=$(sed $'s/\x1b\\[[0-9;?]*[A-Za-z]//g' demo | tr '\r' '\n' | sed -n 's/.*\(replay verify [^`]*\).*/\1/p' | tail -n 1)
[[ -n $command ]] || fail "demo names no 'replay verify' command"
[[ $command == *--outputs* ]] || fail "the command that demo names does not verify outputs: $command"
mapfile -t arguments < <(xargs -n 1 <<<"$command")

TMPDIR=$folder "$binary" "${arguments[@]}" >verify 2>&1
status=$?
cat verify
((status == 0)) || fail "'$command' exits $status, not 0"
grep -q ' decisions, .* signals: identical' verify || fail "'$command' does not say 'N decisions, M signals: identical'"
