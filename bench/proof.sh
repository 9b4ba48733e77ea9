#!/bin/bash
# proof.sh [elastic|train]... -- runs the demos (both) and puts their real output into README.md, each
# between its two marks, with the date, the machine and the kernels that the run itself named: the digests
# are those of these kernels.
set -eu
cd "$(dirname "$0")/.."
heddle=$PWD/build/release/heddle
[ -x "$heddle" ] || { echo "proof: $heddle is missing; run ./dev build first" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

prove()         # NAME COMMAND: the block between <!-- demo NAME --> and <!-- /demo NAME -->
{
	mkdir "$dir/$1"
	(cd "$dir/$1" && "$heddle" demo "$1" 2>/dev/null) >"$dir/out"
	grep -q 'IDENTICAL$' "$dir/out" || { echo "proof: demo $1 is not IDENTICAL" >&2; exit 1; }
	kernels=$(grep -rhoE --include=events.ndjson 'kernels: [a-z]+ on [a-z0-9]+' "$dir/$1" | sort -u)
	[ "$kernels" ] || { echo "proof: the run of demo $1 does not say which kernels it took" >&2; exit 1; }
	processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	{
		sed "/^<!-- demo $1 -->\$/q" README.md
		echo '```'
		echo "\$ $2"
		cat "$dir/out"
		echo '```'
		echo "($(date -u +%F), $(nproc) cores of $processor, $kernels; \`bench/proof.sh\`)"
		sed -n "/^<!-- \/demo $1 -->\$/,\$p" README.md
	} >"$dir/readme"
	cat "$dir/readme" >README.md
}

for name in ${@:-elastic train}; do
	case $name in
	elastic) prove elastic './dev demo elastic' ;;
	train)   prove train './dev demo' ;;
	*)       echo "proof: there is no demo $name; there are: elastic, train" >&2; exit 2 ;;
	esac
done
