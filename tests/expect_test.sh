#!/bin/bash
# What the tests of the program share (program.sh): a program that ends with 0 and did nothing does not pass.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program()       # the body of a program that stands in for heddle
{
	printf '#!/bin/bash\n%s\n' "$1" >"$work/heddle"
	chmod +x "$work/heddle"
}
try()           # STATUS TEXT COMMANDS: of a test that consists of these
{
	local status=0
	printf '. %q\n%s\n' "$source/tests/program.sh" "$3" >"$work/test"
	HEDDLE_BIN=$work/heddle SOURCE_DIR=$source bash "$work/test" >"$work/out" 2>&1 || status=$?
	[ $status -eq "$1" ] && grep -qF -- "$2" "$work/out" && return
	echo "expected exit $1 and '$2', got exit $status of '$3' and:"
	cat "$work/out"
	exit 1
}

program 'exit 0'
try 1 'exit 0 without a verdict: heddle ckpt diff a b' 'expect 0 heddle ckpt diff a b; passed end'
try 1 'exit 0 without a verdict: heddle plan check p'  'expect 0 heddle plan check p; passed end'
try 1 'exit 0 without a.svg: heddle plan draw p -o a.svg' 'expect 0 heddle plan draw p -o a.svg; passed end'
try 1 'exit 0 without r: heddle run job.yaml --out r -q' 'expect 0 heddle run job.yaml --out r -q; passed end'
try 1 'exit 0 without events: heddle resume r' 'mkdir r; expect 0 heddle resume r; passed end'
try 1 'expected exit 3, got 0' 'expect 3 heddle ckpt diff a b; passed end'
try 0 'ok - end' 'expect 0 heddle stop run; passed end'
program 'echo "IDENTICAL: 2 of 2 tensors equal"; touch made; echo x >made'
try 0 'ok - end' 'expect 0 heddle ckpt diff a b; expect 0 heddle model export x -o made -q; passed end'
try 1 '== ./r/events.ndjson: lost 2, view 1' 'mkdir r; cd r; for k in lost view lost; do
	echo "{\"v\":1,\"kind\":\"$k\"}"; done >events.ndjson; cd ..; failed "this"'
echo "an exit code alone is not believed"
