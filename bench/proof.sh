#!/bin/bash
# proof.sh -- runs the demo and puts its real output into README.md, between the two marks.
set -eu
cd "$(dirname "$0")/.."
heddle=$PWD/build/release/heddle
[ -x "$heddle" ] || { echo "proof: $heddle is missing; run ./dev build first" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$dir" && "$heddle" demo 2>/dev/null) >"$dir/out"
{
	sed '/^<!-- demo -->$/q' README.md
	echo '```'
	echo '$ ./dev demo'
	cat "$dir/out"
	echo '```'
	echo "($(date -u +%F), $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), \`bench/proof.sh\`)"
	sed -n '/^<!-- \/demo -->$/,$p' README.md
} >"$dir/readme"
cat "$dir/readme" >README.md
