#!/bin/bash
# Devices of a scheduler that are drained, in maintenance, reserved, in its processes: jobs leave them and go
# on elsewhere with the same bits, a scheduler that is killed knows them, they come back by themselves. The
# machine by itself, through random events: dispatch_window_test.c.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
dir=$work/D pid=

clear_out()
{
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	for seat in "$dir"/devices/* "$dir"/runs/*/seat; do
		[ -s "$seat" ] && read -r _ _ holder _ <"$seat" &&
			[ "$(readlink "/proc/$holder/exe")" = "$(readlink -f "$HEDDLE_BIN")" ] &&
				kill -9 "$holder"
	done 2>/dev/null
	true
}
trap 'clear_out; end_jobs 2>/dev/null; rm -rf "$work"' EXIT

ask() { curl -sS --max-time 20 --unix-socket "$dir/heddle.sock" "http://localhost$1" "${@:2}" >out 2>err; }
is_up() { ask /v1/status && [ -s out ]; }
serve()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool a:2,b:1 --policy fifo --round 1 -q >>serve.out 2>>serve.err &
	pid=$!
	disown
	await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
}
dead() { ! kill -0 "$pid" 2>/dev/null; }
in_state() { ask "/v1/jobs/$1" && [ "$(number state)" = "$2" ]; }
reaches() { await in_state "$1" "$2" || failed "job $1 is $(number state), not $2: $(cat out)"; }
is_on() { ask "/v1/jobs/$1" && grep -q "\"devices\":\[\"$2\"\]" out; }
goes_to() { await is_on "$1" "$2" || failed "job $1 is not on $2: $(cat out)"; }
has() { heddle reserve --dir "$dir" >out && grep -q "$1" out; }
lacks() { ! has "$1"; }

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 4000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [20], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
END
sed 's/steps: 4000/steps: 5000000/; $a workers: {pace: 3 ms}' job.yaml >long.yaml
expect 0 heddle run job.yaml --out alone -q --devices 1

serve
expect 2 heddle drain a-0 --dir "$dir"                                   # without a reason
expect 2 heddle drain nothing --dir "$dir" --reason fans
expect 2 heddle reserve demo --dir "$dir" --devices a:1 --for 1h         # for none
expect 2 heddle reserve demo --dir "$dir" --devices a:3 --for 1h --maintenance
expect 3 heddle unreserve demo --dir "$dir"
expect 0 heddle submit long.yaml --dir "$dir" -q                         # 1
goes_to 1 a-0
expect 0 heddle drain a-0 --dir "$dir" --reason "new fans"
goes_to 1 a-1
ask /v1/pools
kept='"job":0,"window":"drain-a-0","kept":"drain since [0-9.]* s: new fans"'
grep -q '"name":"a-0","type":"a","state":"[a-z]*",'"$kept" out ||
	failed "the device says nothing of its drain: $(cat out)"
ask /v1/events/past
grep -q 'drain-a-0: drain of 1 device from [0-9.]* s until it is taken back: new fans' out ||
	failed "the event of a drain: $(cat out)"
expect 0 heddle status --dir "$dir"
grep -q "drain-a-0.*new fans" out || failed "status says nothing of the drain: $(cat out)"
expect 2 heddle drain a-0 --dir "$dir" --reason again

# A job that takes its steps while its devices are taken away has the bits of one that was left alone.
expect 0 heddle cancel 1 --dir "$dir"
reaches 1 cancelled
expect 0 heddle submit job.yaml --dir "$dir" -q -s workers.pace="1 ms"   # 2
goes_to 2 a-1
expect 0 heddle drain a --dir "$dir" --reason floor
goes_to 2 b-0
kill -9 "$pid"
await dead || failed "process $pid does not end"
serve
has "drain-a-0.*new fans" && has "drain-a .*floor" || failed "a drain is lost: $(cat out)"
reaches 2 done
same "$(heddle ckpt digest "$dir"/runs/2-tiny | sed 1q)" "$(heddle ckpt digest alone | sed 1q)" \
	"bits of job 2"
expect 0 heddle undrain a --dir "$dir"
expect 0 heddle undrain a-0 --dir "$dir"

# A reservation for another user: what waits for it says so. One ends by itself.
expect 0 heddle reserve demo --dir "$dir" --devices a,b --for 1h --user eve --reason show
expect 0 heddle submit job.yaml --dir "$dir" -q -s job.steps=20          # 3
expect 0 heddle explain 3 --dir "$dir"
grep -q ": RESERVED" out && grep -q "demo (reserved for eve)" out ||
	failed "job 3 does not say for what it waits: $(cat out)"
expect 0 heddle unreserve demo --dir "$dir"
reaches 3 done
expect 0 heddle reserve short --dir "$dir" --devices a:1 --for 1s --maintenance
await lacks short || failed "maintenance does not end: $(cat out)"
expect 0 heddle reserve mine --dir "$dir" --devices b-0 --for 1h --user "${USER:-}x" --from 1h
expect 0 heddle unreserve mine --dir "$dir"
lacks mine || failed "the reservation is still there"
grep -q '"unreserve"\|/v1/windows' "$dir"/audit* || failed "the audit log says nothing of it"

# Partitions, read while it serves: a job of one leaves a device that the other takes, and has the bits of one
# that was left alone. A file that is wrong changes nothing.
cat >"$dir/partitions.yaml" <<END
partitions:
  first: {devices: [a], priority: 2, preempt: [rest], time: 1h, user_running: 1}
  rest: {devices: [a-0, b-0], default: true}
END
parts() { ask /v1/status && grep -q '"partitions":\[{"name":"first"' out; }
await parts || failed "the file of partitions is not read: $(cat out)"
grep -q '"policy":"fifo"' out || failed "the policy is another one: $(cat out)"
expect 2 heddle submit job.yaml --dir "$dir" --partition frist
grep -q "did you mean first" err || failed "no hint: $(cat err)"
expect 2 heddle submit job.yaml --dir "$dir" --partition first --time 2h
expect 0 heddle drain b-0 --dir "$dir" --reason fans
expect 0 heddle submit job.yaml --dir "$dir" -q --name moved -s checkpoint.every="60 s" \
	-s workers.pace="1 ms"                                            # 4
goes_to 4 a-0
expect 0 heddle drain a-1 --dir "$dir" --reason fans
expect 0 heddle submit long.yaml --dir "$dir" -q --partition first       # 5
goes_to 5 a-0
expect 0 heddle explain 4 --dir "$dir"
grep -q ": PARTITION\|: DRAINING\|: RESERVED" out || failed "job 4 does not say for what it waits: $(cat out)"
expect 0 heddle submit long.yaml --dir "$dir" -q --partition first       # 6
expect 0 heddle explain 6 --dir "$dir"
grep -q "in partition first may have 1 jobs" out || failed "job 6 does not say for what it waits: $(cat out)"
sed -i 's/rest:/rset:/' "$dir/partitions.yaml"
wrong() { ask /v1/status && grep -q '"partitions_wrong":"[^"]*there is no partition' out; }
await wrong || failed "nothing is said of a wrong file: $(cat out)"
ask /metrics
grep -q 'heddle_partition_jobs{partition="first",state="waiting"} 1' out || failed "metrics: $(cat out)"
expect 0 heddle cancel 6 --dir "$dir"
expect 0 heddle cancel 5 --dir "$dir"
reaches 4 done
same "$(heddle ckpt digest "$dir"/runs/4-tiny | sed 1q)" "$(heddle ckpt digest alone | sed 1q)" \
	"bits of job 4"

# a file that is gone is said; a job is judged by its own partition, not by the one that is first
rm "$dir/partitions.yaml"
gone() { ask /v1/status && grep -q '"partitions_wrong":"[^"]*is gone' out; }
await gone || failed "nothing is said of a file that is gone: $(cat out)"
cat >"$dir/partitions.yaml" <<END
partitions:
  one: {devices: [b], priority: 9}
  two: {devices: [a], default: true, user_devices: 2}
END
await eval "ask /v1/status && grep -q '\"partitions_wrong\":\"\"' out" || failed "still wrong: $(cat out)"
expect 0 heddle submit job.yaml --dir "$dir" --hold --scale 2                    # 7
grep -q UNRUNNABLE err && failed "a job that fits its partition is unrunnable: $(cat err)"
# what is asked for later is within its limits, too
scale() { ask /v1/jobs/7/scale -H 'Content-Type: application/json' -d "{\"scale\":$1}"; }
scale 3
grep -q "PARTITION: it wants 3 devices at once, and the jobs of a user may have 2 in two" out ||
	failed "it does not say which limit: $(cat out)"
scale 1
grep -q '"scale":1' out || failed "it cannot be smaller: $(cat out)"
expect 0 heddle cancel 7 --dir "$dir"

# Trials of a sweep run in the partition that it names; one that there is not is refused, and another one than
# it was begun with is another sweep.
cat >lr.yaml <<END
job: job.yaml
method: grid
space: {optim.lr: [0.001, 0.01]}
metric: {name: loss, over: 2}
END
sweep=(heddle sweep lr.yaml --dir "$dir" -q -s job.steps=6)
expect 2 "${sweep[@]}" --name wrong --partition tow
grep -q "did you mean two" err || failed "no hint: $(cat err)"
expect 2 "${sweep[@]}" --name wrong2 --partition two --account lab
grep -q "this scheduler has no accounts" err || failed "an account that there is not: $(cat err)"
expect 0 "${sweep[@]}" --partition two
ask '/v1/jobs?after=7'
same "$(grep -o '"name":"lr-t[01]",[^}]*"state":"done",[^}]*"partition":"two"' out | wc -l)" 2 \
	"trials in partition two"
"${sweep[@]}" --partition one >out 2>err && failed "a sweep goes on in another partition"
grep -q "is of another sweep: .*partition" err || failed "another partition: $(cat err)"
echo "windows: ok"
