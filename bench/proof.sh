#!/bin/bash
# proof.sh [--check] [elastic|train]... -- runs the demos (both) and puts their real output into README.md,
# each between its two marks, with the date, the machine and the kernels that the run itself named, by their
# fingerprint too: the digests are those of these kernels.
# With --check README.md stays: where this machine has the kernels that it names, its digests must be those
# of the demo.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$PWD/build/release/heddle
[ -x "$heddle" ] || { echo "proof: $heddle is missing; run ./dev build first" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check=
[ "${1:-}" != --check ] || { check=1; shift; }

run_demo()              # NAME: its output into $dir/out, its kernels and their fingerprint into $kernels
{
	local folder words print
	mkdir "$dir/$1"
	(cd "$dir/$1" && "$heddle" demo "$1" 2>/dev/null) >"$dir/out" || { cat "$dir/out"; exit 1; }
	grep -q 'IDENTICAL$' "$dir/out" || { echo "proof: demo $1 is not IDENTICAL" >&2; exit 1; }
	words=$(grep -rhoE --include=events.ndjson 'kernels: [a-z]+ on [a-z0-9]+' "$dir/$1" | sort -u)
	folder=$(find "$dir/$1" -name events.ndjson | sort | head -n 1)
	print=$("$heddle" ckpt show "${folder%/*}" | sed -n 's/^kernels .*, \([0-9a-f]*\)$/\1/p')
	[ "$words" ] && [ "$print" ] ||
		{ echo "proof: demo $1 does not say which kernels it took" >&2; exit 1; }
	kernels="$words, fingerprint $print"
}

paste()                 # NAME COMMAND: the block between <!-- demo NAME --> and <!-- /demo NAME -->
{
	{
		sed "/^<!-- demo $1 -->\$/q" README.md
		echo '```'
		echo "\$ $2"
		cat "$dir/out"
		echo '```'
		echo "($(date -u +%F), $(nproc) cores of $(processor),"
		echo "$kernels; \`bench/proof.sh\`)"
		sed -n "/^<!-- \/demo $1 -->\$/,\$p" README.md
	} >"$dir/readme"
	cat "$dir/readme" >README.md
}

compare()               # NAME: the digests of README.md
{
	local block there here
	block=$(sed -n "/^<!-- demo $1 -->\$/,/^<!-- \/demo $1 -->\$/p" README.md)
	there=$(grep -oE '^  state +[0-9a-f]{32}' <<<"$block" | sed 's/.* //' | sort -u)
	here=$(grep -oE '^  state +[0-9a-f]{32}' "$dir/out" | sed 's/.* //' | sort -u)
	if [[ $block != *"$kernels"* ]]; then
		echo "proof: demo $1: not compared, README.md names other kernels than those here ($kernels)"
	elif [ "$there" != "$here" ]; then
		echo "proof: demo $1 gives $here on these kernels, README.md says ${there:-nothing};" \
			"mend it with bench/proof.sh $1" >&2
		exit 1
	else
		echo "proof: demo $1 gives the digest of README.md, $here"
	fi
}

for name in ${@:-elastic train}; do
	case $name in
	elastic) command='./dev demo elastic' ;;
	train)   command='./dev demo' ;;
	*)       echo "proof: there is no demo $name; there are: elastic, train" >&2; exit 2 ;;
	esac
	run_demo $name
	if [ $check ]; then compare $name; else paste $name "$command"; fi
done
