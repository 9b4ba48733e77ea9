#!/bin/bash
# A word of tools/words is named with its place, unless a row lets it stand there.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HD_TREE=$work
cd "$work"
git init -q .
mkdir -p tools src/run docs/adr tests/data
fail() { echo "words_test: $*"; exit 1; }
turn() { "$source/tools/words.sh"; }

cat >tools/words <<'W'
word who told           # two
may told src/run        # a format
record docs/adr docs/bugs.md
W
printf '/* whoever told_it */\n' >src/a.c
printf '/* told */\n' >src/run/a.c
printf 'who told\n' >docs/bugs.md
printf 'who told\n' >docs/adr/0001.md
printf 'who\n' >tests/data/a.sh
printf 'who\n' >a.png
turn || fail "what may stand is refused"

printf 'a\n"Who", _who\n' >src/run/b.c
printf 'was told\n' >src/runner.c
output=$(turn) && fail "a word is let pass"
[ "$output" = 'src/run/b.c:2: "who": say it with the noun of the field (tools/words)
src/runner.c:1: "told": say it with the noun of the field (tools/words)' ] || fail "said: $output"

rm src/run/b.c src/runner.c
echo 'let told src' >>tools/words
output=$(turn) && fail "an unknown row is let pass"
[ "$output" = 'tools/words:4: unknown row let' ] || fail "said: $output"
echo "each word is named with its place, and may stand where a row says so"
