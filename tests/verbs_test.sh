#!/bin/bash
# Every verb row names a whole-program test that is there and runs that verb; --help of
# each verb works and shows its options; what is mistyped is answered with what was meant.
. "$(dirname "$0")/program.sh"
rows=$(heddle help --man)
[ "$(echo "$rows" | wc -l)" -ge 25 ] || failed "the program does not list its verbs"
defined=$(sed -n 's/^\t\.name = "\([a-z0-9 -]*\)",.*/\1/p' "$SOURCE_DIR"/src/cmd/*/*.c)
same "$(sort <<<"$defined")" "$(sort <<<"$rows")" "verbs that files of src/cmd define and rows of list.h"
test_of()               # VERB: the first test named below its row
{
	awk -v row=".name = \"$1\"," 'index($0, row) { on = 1 }
		on && match($0, /program_[a-z0-9_]*\.sh/) { print substr($0, RSTART, RLENGTH); exit }' \
		"$SOURCE_DIR"/src/cmd/*/*.c
}
while read -r verb; do
	test=$(test_of "$verb")
	[ -f "$SOURCE_DIR/tests/$test" ] || failed "heddle $verb: its test $test is not there"
	grep -Eq "(heddle|train) ($verb( |\$)|\\\$)|heddle $verb" "$SOURCE_DIR/tests/$test" ||
		failed "tests/$test does not run heddle $verb"
	expect 0 heddle $verb --help
	says "usage: heddle $verb"
	long=$(awk 'length > 80 && !/^ / && !/^usage:/' out)       # examples are kept as they are
	[ -z "$long" ] || failed "heddle $verb --help has lines over 80 columns: $long"
	short=$(awk '/^usage:/ { next } /^(options|common options):/ { exit }
		!/^ / && NF && before && length(before) + 1 + length($1) <= 80 { print before }
		{ before = /^ / ? "" : $0 }' out)
	[ -z "$short" ] || failed "heddle $verb --help has lines that end early: $short"
	expect 2 heddle $verb --no-such-option
	says 'there is no option --no-such-option'
done <<<"$rows"
passed "$(echo "$rows" | wc -l) verbs: each has its test and its help"

expect 0 heddle --help
# every exit code of the errors is listed, in both places in the same words
codes=$(sed -n 's/^\tX(\(OK\|E_[A-Z]*\), *-\{0,1\}[0-9]*, *\([0-9]*\),.*/\2/p' "$SOURCE_DIR/src/base/err.h" \
	| sort -un)
[ "$(echo "$codes" | wc -l)" -ge 10 ] || failed "no exit codes found in err.h: $codes"
for code in $codes; do
	words=$(sed -n "/^exit codes:/,/^$/s/^ *$code  //p" out)
	[ "$words" ] || failed "the help does not say what exit code $code is"
	grep -qF "| $code | $words |" "$SOURCE_DIR/README.md" ||
		failed "README.md does not say of exit code $code: $words"
done
passed "exit codes are listed"
while read -r verb; do says "  $verb"; done <<<"$rows"
expect 2 heddle
expect 2 heddle rnu
says 'run'
expect 2 heddle ckpt lss
says 'ls'
expect 2 heddle run x.yaml --stpes 3
says 'did you mean --steps?'
expect 2 heddle run x.yaml --steps many
says '--steps many'
expect 2 heddle eval --steps 3 x
says 'does not take --steps'
expect 2 heddle config check a b
says 'takes JOB'
passed "wrong verbs, options, values and counts are answered with what is right"
