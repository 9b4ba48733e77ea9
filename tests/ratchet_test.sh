#!/bin/bash
# The ratchet lets counts fall and not rise, and a place that is new begins at nothing.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HD_TREE=$work
cd "$work"
git init -q .
mkdir -p tools src/run docs/adr tests/data
fail() { echo "ratchet_test: $*"; exit 1; }
turn() { "$source/tools/ratchet.sh" "$@"; }
long=$(printf 'a%.0s' {1..111})

printf '# kept\n' >tools/ratchet
printf '/* Who told nobody, whoever was; told_it. */\n\t%s\n%s\n' "${long:0:103}" "${long:0:110}" >src/run/a.c
printf 'X(%s)\n| %s |\n\t{ %s }\n/* %s */\n' $long $long $long $long >src/run/b.h
printf 'who\n' >docs/bugs.md
printf 'who\n' >docs/adr/0001.md
printf '%s\n```\n%s\n```\n' $long $long >docs/a.md
printf 'who\n' >tests/data/a.sh
turn
printf '# kept\ndocs 0 1\nrun 3 1\n' >want
cmp want tools/ratchet || fail "counts are $(cat tools/ratchet)"
turn --check || fail "what is allowed is refused"

echo '/* told */' >>src/run/a.c
output=$(turn --check) && fail "a word more is let pass"
[ "$output" = 'run: 4 words of tools/ratchet, 3 allowed: say it with the noun of the field' ] ||
	fail "said: $output"
turn >/dev/null && fail "a word more is written down"
grep -q '^run 3 1$' tools/ratchet || fail "a count rose"

printf '%s\n%s\n' $long $long >src/run/a.c
output=$(turn --check) && fail "a long line more is let pass"
[ "$output" = 'run: 2 lines over 110 columns, 1 allowed' ] || fail "said: $output"

echo >src/run/a.c
turn
grep -q '^run 0 0$' tools/ratchet || fail "a count did not fall: $(cat tools/ratchet)"

mkdir src/fresh
echo '/* whom */' >src/fresh/a.c
output=$(turn --check) && fail "a new place may begin with what is counted"
[[ $output == fresh:* ]] || fail "said: $output"
echo "counts fall and do not rise"
