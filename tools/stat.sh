#!/bin/bash
# stat.sh: the size of things, to be looked at and not to be obeyed: lines per room,
# length of functions (needs universal-ctags), share of comment lines, includes per
# floor. Tests are counted apart.
set -eu -o pipefail
cd "$(dirname "$0")/.."

files()                 # headers, sources or tests
{
	case $1 in
	headers) find src -name '*.h' ;;
	sources) find src -name '*.c' ! -name '*_test.c' ;;
	tests) find src -name '*_test.c' ;;
	esac
}

echo "lines            files   code  tests"
for room in $(awk '$1 == "floor" { $1 = ""; print }' tools/floors); do
	[ -d "src/$room" ] || continue
	find "src/$room" -name '*.[ch]' | xargs -r awk -v room="$room" '
		FNR == 1 { files++ }
		FILENAME ~ /_test\.c$/ { tests++; next }
		{ code++ }
		END { printf "  %-12s %7d %6d %6d\n", room, files, code, tests }'
done

echo "comment lines    median   95 %   (share of a file)"
for kind in headers sources tests; do
	files $kind | while read -r file; do
		awk '
			/^[ \t]*\/\*/ { inside = 1 }
			NF { lines++; comment += inside }
			/\*\// { inside = 0 }
			END { if (lines) printf "%d\n", 100 * comment / lines }' "$file"
	done | sort -n |
		awk -v kind="$kind" '{ at[NR] = $1 }
			END {
				if (NR) printf "  %-13s %6d %%  %4d %%\n", kind, at[int((NR + 1) / 2)],
					at[int(NR * .95 + .5)]
			}'
done

if ctags --version 2>/dev/null | grep -q Universal; then
	echo "function lines   median   95 %   longest"
	for kind in sources tests; do
		files $kind | xargs -r ctags -x --_xformat='%N %F %n %e' --fields=+e --c-kinds=f |
			awk '{ print $4 - $3 + 1, $2 ":" $3, $1 }' | sort -n |
			awk -v kind="$kind" '{ at[NR] = $1; last = $0 }
				END {
					if (NR) printf "  %-13s %6d  %6d    %s\n", kind,
						at[int((NR + 1) / 2)], at[int(NR * .95 + .5)], last
				}'
	done
else
	echo "function lines   not measured: universal-ctags is not installed"
fi

echo "project includes per file, by floor"
awk '$1 == "floor" { n++; $1 = ""; print n - 1, $0 }' tools/floors | while read -r floor rooms; do
	folders=$(for room in $rooms; do [ ! -d "src/$room" ] || echo "src/$room"; done)
	[ -n "$folders" ] || continue
	find $folders -name '*.[ch]' ! -name '*_test.c' | xargs -r awk -v floor="$floor" -v rooms="$rooms" '
		FNR == 1 { files++ }
		/^#include "/ { includes++ }
		END { if (files) printf "  %d %-20s %5.1f\n", floor, rooms, includes / files }'
done
