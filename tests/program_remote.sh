#!/bin/bash
# Workers of other machines: network namespaces stand for them, each with nothing in common but the wire and
# the disk, of which they use only the key. Whatever comes, goes, dies or is cut off, the bits are those of
# one device.
. "$(dirname "$0")/program.sh"

cat >long.yaml <<END
job: {name: long, seed: 3, steps: 2400}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [200, 100], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 960, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 800 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms}
END

# ---- on one machine: keys, addresses, refusals ----

expect 0 heddle serve --new-key key
same "$(stat -c %a:%s key)" "600:65" "mode and length of a new key"
expect 2 heddle serve --new-key key
says 'is there already'
heddle serve --new-key other >out
mkdir open && cp key open/key && chmod 0644 open/key
expect 11 heddle worker --join 127.0.0.1:9 --key open/key
says 'chmod 0600'
expect 2 heddle worker --join 127.0.0.1:9
says 'needs the run'
expect 75 heddle worker --join 127.0.0.1:9 --key key
says 'no answer from 127.0.0.1:9'
expect 2 heddle worker --join there:9 --key key
expect 2 heddle run long.yaml --workers 1 --listen 127.0.0.1:0
says 'there is no key'
expect 2 heddle run long.yaml --workers 1 --listen 0.0.0.0:0 --key key
says 'every address of this machine'
expect 2 heddle run long.yaml --workers 1 --listen '[0:0:0:0:0:0:0:0]:0' --key key
says 'every address of this machine'
expect 2 heddle run long.yaml --workers 1 --key key
says 'add --listen'
expect 2 heddle run long.yaml --workers 1 --listen somewhere --key key
says 'write HOST:PORT'
expect 2 heddle run long.yaml --listen 127.0.0.1:0 --key key
says '--workers 1'
expect 3 heddle run long.yaml --workers 1 --listen 127.0.0.1:0 --key nowhere
rm -rf runs
passed "a key is its owner's alone, and nothing listens without one"

listens() { await test -s "$1/listen" && cat "$1/listen"; }
members() { heddle status "$1" --json 2>/dev/null | grep -o '"members":[0-9]*' | head -n 1 | cut -d: -f2; }
has_now() { [ "$(members "$1" || true)" = "$2" ]; }
has_members() { await has_now "$1" "$2" || failed "$1 has $(members "$1") members, not $2"; }
# of a process, in the tables of TCP: by inode
tcp_sockets()
{
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
		while read -r inode; do
		awk -v inode="$inode" '$10 == inode' /proc/net/tcp /proc/net/tcp6 2>/dev/null
	done
}
descendants() { echo "$1"; for child in $(pgrep -P "$1"); do descendants "$child"; done; }

expect 0 heddle run long.yaml --out twin --devices 1 --json -q
first=$(number digest)
ends_well()        # run, what it was
{
	expect 0 heddle ckpt diff "$1" twin
	says IDENTICAL
	says 'digest logs agree'
	same "$(grep -o '"step":[0-9]*' "$1/metrics.ndjson" | sort -t: -k2n -u | wc -l)" 2400 \
		"steps with a record, $2"
}

"$HEDDLE_BIN" run long.yaml --out plain --workers 2 --devices 1 -q 2>log &
run=$!
reach plain 30
for pid in $(descendants $run); do
	! tcp_sockets "$pid" | grep . || failed "process $pid of a local run has a TCP socket"
done
wait $run || failed "plain ended with $?"
ends_well plain "a local run"
passed "a run that is not asked to listen has no TCP socket"

"$HEDDLE_BIN" run long.yaml --out near --workers 2 --devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
run=$!
where=$(listens near)
reach near 10
[ "$(for pid in $(descendants $run); do tcp_sockets "$pid"; done | wc -l)" -ge 3 ] ||
	failed "what listens is not seen"
expect 2 heddle worker --join "$where" --key other -q
says 'does not take this key'
expect 2 heddle worker --join "$where" --key key -s batch.global=240 -q
says 'what fixes the result differs'
expect 0 heddle worker --join "$where" --key key --devices 1 -q
wait $run || failed "near ended with $?"
ends_well near "two workers here, one over TLS"
grep -q '"kind":"listening"' near/events.ndjson || failed "no event of the address"
for word in $(cat key) $(cat other); do
	! grep -rqF "$word" near log out err 2>/dev/null || failed "a key stands in a file of the run"
done
passed "a worker joins over TLS; a wrong key and another job are refused"

# a run that did not listen is taken up by one that does, from elsewhere: workers and later coordinators go
# by what was said then
expect 0 heddle run long.yaml --out late --workers 1 --devices 1 --steps 800 -q
mkdir -p elsewhere && cd elsewhere || exit 1
"$HEDDLE_BIN" resume ../late --workers 1 --devices 1 --listen 127.0.0.1:0 --key ../key -q 2>log &
run=$!
cd ..
where=$(listens late)
reach late 810
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
guest=$!
has_members late 2
kill -9 "$run"
wait "$run" 2>/dev/null
wait "$guest" || failed "a guest of a run taken up ended with $?: $(cat log.guest)"
await test -f late/ckpt/step-000002400/MANIFEST.json && await test -f late/report.html ||
	failed "late did not end"
expect 0 heddle ckpt diff late twin
says IDENTICAL
grep -q '"key":"/' late/job.resolved.json || failed "the key's place depends on where one stands"
passed "a run that is taken up listens where it is asked to"

# the machine that coordinates is gone with all of its processes; guests hold the state until somebody serves
# the run again
"$HEDDLE_BIN" run long.yaml --out kept --workers 1 --devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
run=$!
where=$(listens kept)
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
guest=$!
has_members kept 2
reach kept 100
pid_of_local()
{
	heddle status "$1" --json | grep -oE '"id":[0-9]{1,6},[^}]*"pid":[0-9]*' | grep -o '[0-9]*$'
}
kill -9 "$(pid_of_local kept)"
await grep -q '"kind":"lost"' kept/events.ndjson || failed "the worker here is not missed"
has_members kept 2
kill -9 "$(pid_of_local kept)" "$run"
wait "$run" 2>/dev/null
expect 0 heddle serve --job kept --devices 1 -q
wait "$guest" || failed "a guest that held the state ended with $?: $(cat log.guest)"
expect 0 heddle ckpt diff kept twin
says IDENTICAL
! grep -q '"kind":"restore"' kept/events.ndjson || failed "what the guest held was thrown away"
plans_of kept 3
grep -qE '^cause .*: worker 1[0-9]{6}"' kept/plan/*.plan ||
	failed "no plan of the time when the guest was alone: $(grep -h '^cause' kept/plan/*.plan)"
passed \
	"guests keep the state while no process of the run's machine is left; the coordinator records what they do"

"$HEDDLE_BIN" run long.yaml --out empty --workers 1 --devices 1 -q 2>log &
run=$!
reach empty 100
kill -9 "$(pid_of_local empty)" "$run"
wait "$run" 2>/dev/null
expect 0 heddle serve --job empty --devices 1 -q
expect 0 heddle ckpt diff empty twin
says IDENTICAL
grep -q '"kind":"restore"' empty/events.ndjson || failed "no coordinator looked at what is on disk"
passed "a run without a process is served again"

# a worker that stands still before it has joined: by hand, so not always in time
for try in 1 2 3 4 5; do
	"$HEDDLE_BIN" run long.yaml -s 'workers.detect=100 ms' -s 'workers.min_wait=1 s' --out "still$try" \
		--workers 1 --devices 1 -q 2>err &
	run=$!
	until child=$(pgrep -P $run | head -n 1) && [ "$child" ]; do :; done
	kill -STOP "$child"
	sleep 0.3
	[ "$(heddle status "still$try" --json | grep -o '"state":"starting"' | head -n 1)" ] || {
		kill -CONT "$child"
		kill "$run"
	}
	status=0
	wait "$run" || status=$?
	[ $status -ne 10 ] || break
done
same $status 10 "exit code of a run that no worker joins"
says 'no worker joined within workers.min_wait'
passed "a run that no worker joins does not wait for ever"

# the data must be here, and be the same
mkdir -p there/data here
if command -v python3 >/dev/null; then
	python3 - <<END
import random, os
for where, seed in (("there", 1), ("here", 2)):
    random.seed(seed)
    os.makedirs(where, exist_ok=True)
    with open(where + "/rows.csv", "w") as f:
        f.write("a,b,c,y\n")
        for i in range(300):
            f.write("%.3f,%.3f,%.3f,%d\n" % (random.random(), random.random(), random.random(), i % 3))
END
	cp there/rows.csv copy.csv
	cat >csv.yaml <<END
job: {name: csv, seed: 3, steps: 4000}
model: {use: "builtin:mlp", args: {input: [3], hidden: [64], classes: 3}}
data: {kind: csv, path: there/rows.csv}
batch: {global: 120, virtual_nodes: 12}
checkpoint: {every: 1000 steps, keep: 2}
trace: {digest: 1}
workers: {detect: 500 ms}
END
	expect 0 heddle run csv.yaml --out csvtwin --devices 1 --json -q
	"$HEDDLE_BIN" run csv.yaml --out csv --workers 1 --devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
	run=$!
	where=$(listens csv)
	mkdir -p elsewhere && cd elsewhere || exit 1
	expect 3 heddle worker --join "$where" --key ../key -q -s data.path=../here/rows.csv
	says 'are not those of the run'
	expect 3 heddle worker --join "$where" --key ../key -q -s data.path=../nowhere.csv
	says 'copy them, or say where they are by -s data.path=PATH'
	expect 0 heddle worker --join "$where" --key ../key -q --devices 1 -s data.path=../copy.csv
	cd ..
	wait $run || failed "csv ended with $?"
	expect 0 heddle ckpt diff csv csvtwin
	says IDENTICAL
	passed "data that are absent or other are refused; a copy elsewhere serves"
fi

# what joiners could not be sent is refused at the start
far=$PWD deep=$(printf 'd%.0s' $(seq 200))
for _ in $(seq 20); do mkdir $deep && cd $deep || exit 1; done
expect 3 heddle run "$far/long.yaml" --out "$far/deep" --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key "$far/key" -q
says 'must be told it'
cd "$far" || exit 1
passed "a run whose job cannot be sent does not listen"

# a model in a file: found where the run was begun, or named
expect 0 heddle model show long.yaml -o long.graph
sed 's/^model:.*/model: {use: "graph:long.graph"}/; s/name: long/name: file/; s/steps: 2400/steps: 1200/' \
	long.yaml >file.yaml
expect 0 heddle run file.yaml --out filetwin --devices 1 -q
"$HEDDLE_BIN" run file.yaml --out file --workers 1 --devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
run=$!
where=$(listens file)
reach file 5
mkdir -p elsewhere && cd elsewhere || exit 1
mv ../long.graph ../moved.graph
expect 3 heddle worker --join "$where" --key ../key -q
says 'model.use of the run names this file: copy it to long.graph'
mv ../moved.graph ../long.graph
expect 0 heddle worker --join "$where" --key ../key -q --devices 1
cd ..
wait $run || failed "file ended with $?"
grep -q '"kind":"view".*2 members' file/events.ndjson || failed "the guest took no part"
expect 0 heddle ckpt diff file filetwin
says IDENTICAL
passed "a model in a file is found where the run was begun, or named"

# a machine of other kernels: the library's differ by what it may use of a processor
cat >lenet.yaml <<END
job: {name: lenet, seed: 4, steps: 2500}
model: {use: "builtin:lenet", args: {height: 16, width: 16, classes: 3}}
data: {kind: synthetic, count: 500}
batch: {global: 96, virtual_nodes: 8}
checkpoint: {every: 800 steps, keep: 2}
END
bits()
{
	ONEDNN_MAX_CPU_ISA=$1 "$HEDDLE_BIN" run lenet.yaml -s job.steps=2 --out "bits$1" --devices 1 \
		--json -q | grep -o '"digest":"[^"]*"'
}
if [ "$(bits ALL)" != "$(bits SSE41)" ]; then
	expect 0 heddle run lenet.yaml -s job.kernels=portable --out ptwin --devices 1 -q
	for kernels in library portable; do
		"$HEDDLE_BIN" run lenet.yaml -s job.kernels=$kernels --out k-$kernels --workers 1 \
			--devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
		run=$!
		where=$(listens k-$kernels)
		reach k-$kernels 10
		want=2
		[ $kernels = library ] || want=0
		ONEDNN_MAX_CPU_ISA=SSE41 expect $want heddle worker --join "$where" --key key --devices 1 -q
		[ $kernels = portable ] || says 'use a like machine, or start with kernels: portable'
		[ $kernels = library ] || grep -q '"kind":"view".*2 members' k-portable/events.ndjson ||
			failed "it took no part"
		wait $run || failed "k-$kernels ended with $?"
	done
	expect 0 heddle ckpt diff k-portable ptwin
	says IDENTICAL
	passed "other kernels: refused with the way out, and welcome where they are portable"
else
	echo "skip: a machine of other kernels (the library's are the same here whatever the processor)"
fi

HEDDLE_BIN=$HEDDLE_BIN expect 0 "$SOURCE_DIR/examples/launch/two-machines.sh"
passed "the example runs"

# ---- other machines ----

a=hd$$a b=hd$$b c=hd$$c
ip netns add $a 2>/dev/null || { echo "skip: other machines (needs root and ip netns)"; exit 0; }
ip netns add $b && ip netns add $c || { echo "skip: other machines (ip netns)"; exit 0; }
started=()
trap \
	'kill "${started[@]}" 2>/dev/null; end_jobs; ip netns del $a; ip netns del $b; ip netns del $c; rm -rf "$work"' EXIT
cable()        # namespace, address: to a switch in $a
{
	ip -n "$a" link add "to$1" type veth peer name eth netns "$1" &&
		ip -n "$a" link set "to$1" master switch up &&
		ip -n "$1" addr add "$2/24" dev eth && ip -n "$1" link set eth up && ip -n "$1" link set lo up
}
ip -n $a link set lo up && ip -n $a link add switch type bridge &&
	ip -n $a addr add 10.77.0.1/24 dev switch && ip -n $a link set switch up &&
	cable $b 10.77.0.2 && cable $c 10.77.0.3 || {
		echo "skip: other machines (no veth or bridge here)"
		exit 0
	}
joins()        # namespace, log: a worker there, in the background; its process in $guest
{
	ip netns exec "$1" "$HEDDLE_BIN" worker --join 10.77.0.1:7000 --key key --devices 1 2>"$2" &
	guest=$!
	started+=("$guest")
}
begins()       # run, workers
{
	ip netns exec $a "$HEDDLE_BIN" run long.yaml --out "$1" --workers "$2" --devices 1 \
		--listen 10.77.0.1:7000 --key key -q 2>log &
	run=$!
	[ "$(listens "$1")" ] || failed "$1 does not listen"
}
ended() { local status=0; wait "$1" || status=$?; same "$status" "$2" "exit code of $3"; }

begins far 1
joins $b log.b; first_guest=$guest
joins $c log.c; second_guest=$guest
has_members far 3
reach far 300
kill -TERM $first_guest
ended $first_guest 75 "a guest that was asked to go"
has_members far 2
joins $b log.b2; third_guest=$guest
ended $run 0 "far"
ended $second_guest 0 "a guest at the end"
ended $third_guest 0 "a guest that came late"
ends_well far "three machines"
passed "workers of other machines come and go"

begins kill 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members kill 3
reach kill 200
kill -9 $first_guest
wait $first_guest 2>/dev/null
reach kill 1000
ended $run 0 "kill"
ended "$guest" 0 "the other guest"
ends_well kill "a guest killed"
passed "a guest that is killed costs its virtual nodes of one step"

begins cut 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members cut 3
reach cut 200
ip -n $b link set eth down
has_members cut 2
ip -n $b link set eth up
has_members cut 3
ended $run 0 "cut"
ended "$guest" 0 "the guest beside"
ended $first_guest 0 "the guest that was cut off"
ends_well cut "a link cut and mended"
grep -q '"kind":"lost","step":[0-9]*,"membership":[0-9]*,"worker":1000' cut/events.ndjson ||
	failed "no event says so"
passed "a guest whose link is cut is fenced, and joins again when it is mended"

# the only worker of the run's machine dies: guests hold the state until another can save it
begins alone 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members alone 3
reach alone 200
local=$(heddle status alone --json | grep -o '"id":0,[^}]*"pid":[0-9]*' | grep -o '[0-9]*$')
kill -9 "$local"
has_members alone 3
ended $run 0 "alone"
ended $first_guest 0 "a guest"
ended "$guest" 0 "another guest"
ends_well alone "the only local worker killed"
passed "guests keep the state when the last local worker dies"

begins coordinator 2
joins $b log.b
has_members coordinator 3
reach coordinator 200
kill -9 "$(heddle status coordinator --json | grep -o '"pid":[0-9]*' | head -n 1 | cut -d: -f2)"
wait $run 2>/dev/null
await test -f coordinator/ckpt/step-000002400/MANIFEST.json || failed "coordinator did not end"
ended "$guest" 0 "a guest under two coordinators"
expect 0 heddle ckpt diff coordinator twin
says IDENTICAL
passed "a guest reaches the coordinator that follows at the same address"

begins lonely 1
joins $b log.b
has_members lonely 2
ip -n $a link set switch down
ended "$guest" 75 "a guest without a way"
grep -q 'no coordinator for thirty times' log.b || failed "a guest without a way says nothing"
ended $run 0 "lonely"
ends_well lonely "all guests lost"
passed "a guest without a way to the run leaves after its time, the run goes on"
