#!/bin/bash
# heddle bench allreduce: sums over processes have the right bits over each transport, and nothing is left
# behind; times are not judged.
. "$(dirname "$0")/program.sh"
export TMPDIR=$work
# all that --help offers, which is the table (src/wire/transports.h)
transports=$(heddle bench allreduce --help | sed -n 's/.*--transport \([a-z|]*\) .*/\1/p' | tr '|' ' ')
[ "$transports" ] || failed "no transport is offered"
for transport in $transports; do
	for n in 2 3 4; do
		for bytes in 4 1048580 5000000; do
			expect 0 heddle bench allreduce --workers $n --bytes $bytes --transport $transport \
				--repeat 2 --json
			json_ok
			same \
				"$(number workers) $(number bytes) $(number transport) $(number \
				checked) $(number rounds)" "$n $bytes $transport true 2" "what was asked for"
			awk -v n=$n -v b=$bytes -v t="$(number time_ms_median)" -v g="$(number busbw_GBps)" \
				-v low="$(number time_ms_min)" -v high="$(number time_ms_max)" 'BEGIN {
					d = 2 * (n - 1) / n * b / t / 1e6 / g - 1
					exit !(t > 0 && low <= t && t <= high && d < 1e-6 && d > -1e-6)
				}' || failed "busbw is not of its terms"
		done
	done
	passed "$transport sums with the right bits"
done
expect 0 heddle bench allreduce --bytes 4000 --repeat 3
says 'shm, 2 processes, 4000 bytes'
[ -z "$(ls -d heddle-* 2>/dev/null)" ] || failed "a folder is left behind"
passed "defaults, in words"

expect 2 heddle bench allreduce --workers 1
says '2 to 16'
expect 2 heddle bench allreduce --workers 17
expect 2 heddle bench allreduce --bytes 6
says 'a multiple of 4'
expect 2 heddle bench allreduce --bytes 0
expect 2 heddle bench allreduce --repeat 0
expect 2 heddle bench allreduce --repeat 1001
expect 2 heddle bench allreduce --transport eager
says 'shm|unix|tcp|tls'
HEDDLE_BENCH_MEMBER=x expect 2 heddle bench allreduce
says 'unset it'
passed "what cannot be summed is refused"

# A member that dies ends all, at once and with a reason; so does a leader.
"$HEDDLE_BIN" bench allreduce --workers 3 --bytes 40000000 --repeat 999 >out 2>err &
leader=$!
until children=$(pgrep -P $leader) && [ "$(echo "$children" | wc -l)" = 3 ]; do
	kill -0 $leader || failed "the leader ended by itself"
done
kill -KILL "$(echo "$children" | head -n 1)"
status=0
wait $leader || status=$?
same $status 10 "exit code of too few workers"
says 'exit code 137'
for child in $children; do ! kill -0 "$child" 2>/dev/null || failed "process $child is left behind"; done
"$HEDDLE_BIN" bench allreduce --workers 2 --bytes 40000000 --repeat 998 >out 2>err &
leader=$!
until children=$(pgrep -P $leader) && [ "$(echo "$children" | wc -l)" = 2 ]; do
	kill -0 $leader || failed "the leader ended by itself"
done
kill -KILL $leader
wait $leader
for child in $children; do
	timeout 30 tail --pid="$child" -f /dev/null || failed "process $child outlives its leader"
done
passed "no process stays behind when another dies"
