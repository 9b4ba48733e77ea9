#!/bin/bash
# The machines that are simulated are those that run: one object each defines them, the simulation takes them
# from there, and neither it nor they know which of the two is going on.
set -eu -o pipefail
build=${BUILD_DIR:?}
fail() { echo "objects_test: $*" >&2; exit 1; }
[ -f "$build/libhd_cluster.a" ] || { echo "skip: no room cluster in this build"; exit 77; }
command -v nm >/dev/null || { echo "skip: no nm"; exit 77; }

symbols=$(for lib in "$build"/libhd_*.a; do nm -A "$lib" 2>/dev/null; done)
for symbol in hd_member_step hd_member_create hd_coordinator_step hd_coordinator_create hd_seals_add hd_exchange_again hd_msg_decode; do
	defined=$(echo "$symbols" | awk -v s="$symbol" '$NF == s && $(NF-1) == "T" { print $1 }' | sed "s/:[0-9a-f]*$//" | sort -u)
	[ "$(echo "$defined" | grep -c .)" = 1 ] || fail "$symbol is defined in: $defined"
	echo "$symbol: ${defined##*/}"
done
for symbol in hd_member_step hd_coordinator_step; do
	echo "$symbols" | awk -v s="$symbol" '$NF == s && $(NF-1) == "U" { print $1 }' | grep -q 'simulation' || fail "the simulation does not call $symbol"
done
for object in member member_step member_view coordinator coordinator_view coordinator_plan; do
	calls=$(echo "$symbols" | grep ":$object\.c\.o:" | awk '$(NF-1) == "U" { print $NF }' | grep -E '^(sim_|hd_sim|clock_|time$|gettimeofday|socket|open|write|read|pthread_|hd_clock|hd_hub)' || true)
	[ -z "$calls" ] || fail "$object calls $calls: it is not pure"
done
echo "objects_test: the same objects run and are simulated, and are pure"
