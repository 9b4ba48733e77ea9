#!/bin/bash
# The machines that are simulated are those that run: one object each defines them, the simulation takes them
# from there, and neither it nor they know which of the two is going on. Pure is whatever a machine calls,
# through any number of objects: the list is followed from what is defined here on, and kept by no hand.
set -eu -o pipefail
build=${BUILD_DIR:?}
fail() { echo "objects_test: $*" >&2; exit 1; }
[ -f "$build/libhd_protocol.a" ] || { echo "skip: no room protocol in this build"; exit 77; }
command -v nm >/dev/null || { echo "skip: no nm"; exit 77; }

source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
# a build folder may hold rooms that are gone
rooms=$(awk '$1 == "floor" { for (i = 2; i <= NF; i++) print $i }' "$source/tools/floors")
symbols=$(for room in $rooms; do nm -A "$build/libhd_$room.a" 2>/dev/null || true; done)
begin="hd_member_step hd_member_create hd_coordinator_step hd_coordinator_create hd_seals_add
	hd_exchange_again hd_msg_decode"
for symbol in $begin; do
	defined=$(echo "$symbols" | awk -v s="$symbol" '$NF == s && $(NF-1) == "T" { print $1 }' |
		sed "s/:[0-9a-f]*$//" | sort -u)
	[ "$(echo "$defined" | grep -c .)" = 1 ] || fail "$symbol is defined in: $defined"
	echo "$symbol: ${defined##*/}"
done
for symbol in hd_member_step hd_coordinator_step; do
	echo "$symbols" | awk -v s="$symbol" '$NF == s && $(NF-1) == "U" { print $1 }' |
		grep -q 'simulation' || fail "the simulation does not call $symbol"
done

# OBJECT SYMBOL: every call of every object that is reached from these
reached=$(echo "$symbols" | awk -v begin="$begin" '
	{ object = $1; sub(/:[0-9a-f]*$/, "", object); sub(/.*\//, "", object); sub(/:$/, "", object) }
	$(NF-1) ~ /^[TDRB]$/ { home[$NF] = object; next }
	$(NF-1) == "U" { calls[object] = calls[object] " " $NF }
	END {
		n = split(begin, todo, " ")
		for (i = 1; i <= n; i++) todo[i] = home[todo[i]]
		for (i = 1; i <= n; i++) {
			if (todo[i] in seen) continue
			seen[todo[i]]
			ncalls = split(calls[todo[i]], call, " ")
			for (k = 1; k <= ncalls; k++) {
				print todo[i], call[k]
				if (call[k] in home) todo[++n] = home[call[k]]
			}
		}
	}')
for object in member member_step member_view coordinator coordinator_view coordinator_plan \
	coordinator_transfer exchange view \
	seal message; do
	grep -q ":$object\.c\.o " <<<"$reached" ||
		fail "$object is not reached from the machines: mend how this test follows them"
done
system='sim_|hd_sim|clock_|time$|gettimeofday|getenv|random|rand$|socket|open|fopen|read|write|poll|pthread_'
impure=$(grep -E " ($system|hd_clock|hd_hub|hd_loop|hd_fs_)" <<<"$reached" || true)
[ -z "$impure" ] || fail "not pure, though the machines call it: $impure"
echo "objects_test: the same objects run and are simulated; $(cut -d ' ' -f 1 <<<"$reached" | sort -u |
	wc -l) objects are pure"
