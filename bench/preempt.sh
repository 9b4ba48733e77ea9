#!/bin/bash
# preempt.sh -- what urgent bytes wait for behind others, and what steps lose beside state for a joiner, over
# links of several rates and delays.
#
#	bench/preempt.sh          # the table of docs/results/preempt.md
#
# Each line is `heddle bench preempt`: alone, by arrival and in order, in turns; medians of the rounds. Rates
# below 1 Gbit/s have less bulk, so that each transfer takes about as long.
#
#	HD_BENCH_ROUNDS   rounds (default 5)
#	HD_BENCH_LINES    "RATE DELAY BYTES TRANSPORT" lines (default: those below)
#	HD_BENCH_UNDER    a program to run it under, as "chrt -f 50" on a machine that has other work
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
rounds=${HD_BENCH_ROUNDS:-5}
lines=${HD_BENCH_LINES:-"1000 0 67108864 tcp
1000 0 67108864 tls
200 0 16777216 tcp
200 0 16777216 tls
50 0 4194304 tcp
50 0 4194304 tls
1000 1 67108864 tcp
1000 5 67108864 tcp
200 10 16777216 tcp
50 10 4194304 tcp
0 0 67108864 shm"}

stamp
under=${HD_BENCH_UNDER:+; under $HD_BENCH_UNDER}
echo "# $(with_load); $(cat /proc/sys/net/ipv4/tcp_congestion_control); $rounds rounds$under"
while read -r rate delay bytes transport; do
	shape=()
	[ "$rate" = 0 ] || shape=(--rate "$rate" --delay "$delay")
	${HD_BENCH_UNDER:-} "$heddle" bench preempt "${shape[@]}" --bytes "$bytes" --transport "$transport" \
		--repeat "$rounds" </dev/null
done <<<"$lines"
