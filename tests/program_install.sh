#!/bin/bash
# `cmake --install`: the program in its folder runs, each verb has a manual page that man reads, shells have
# completions.
. "$(dirname "$0")/program.sh"
build=$(dirname "$(readlink -f "$HEDDLE_BIN")")
[ -f "$build/cmake_install.cmake" ] || { echo "skip: $build is no build folder"; exit 77; }
expect 0 cmake --install "$build" --prefix "$PWD/there"
expect 0 there/bin/heddle version
for file in man/man1 doc/heddle/README.md doc/heddle/LICENSE bash-completion/completions/heddle \
	zsh/site-functions/_heddle fish/vendor_completions.d/heddle.fish; do
	[ -s "there/share/$file" ] || failed "share/$file was not installed"
done
passed "the installed program runs; its documents and completions are there"

rows=$(there/bin/heddle help --man)
[ "$(echo "$rows" | wc -l)" -ge 25 ] || failed "the program does not list its verbs"
while read -r verb; do
	page=there/share/man/man1/heddle-${verb// /-}.1
	[ -s "$page" ] || failed "heddle $verb has no manual page"
	for part in NAME SYNOPSIS OPTIONS; do
		grep -qx ".SH $part" "$page" || failed "$page has no part $part"
	done
	expect 0 there/bin/heddle $verb --help
	for option in $(sed -n 's/^  \(-., \)\{0,1\}--\([a-z0-9-]*\) .*/\2/p' out); do
		grep -qF -- "\\-\\-${option//-/\\-}\\fR" "$page" || failed "$page does not have --$option"
	done
done <<<"$rows"
passed "$(echo "$rows" | wc -l) manual pages, each with its verb's options"

if command -v mandoc >/dev/null; then
	expect 0 mandoc -T lint -W error there/share/man/man1/*.1
elif command -v groff >/dev/null; then
	for page in there/share/man/man1/*.1; do
		expect 0 groff -man -Tascii -ww "$page"
		[ ! -s err ] || failed "groff complains of $page"
	done
else
	echo "skip: no mandoc and no groff here"
	exit 77
fi
passed "the formatter accepts each page"
