#!/bin/bash
# Workers that join a run over TLS, on one machine: keys, addresses, refusals, and a run that goes on without
# its coordinator's machine. Whatever comes and goes, the bits are those of one device.
. "$(dirname "$0")/program.sh"
. "$SOURCE_DIR/tests/remote.sh"

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

# of a process, in the tables of TCP: by inode
tcp_sockets()
{
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
		while read -r inode; do
		awk -v inode="$inode" '$10 == inode' /proc/net/tcp /proc/net/tcp6 2>/dev/null
	done
}
descendants() { echo "$1"; for child in $(pgrep -P "$1"); do descendants "$child"; done; }

"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out plain --workers 2 --devices 1 -q 2>log &
run=$!
reach plain 30
for pid in $(descendants $run); do
	! tcp_sockets "$pid" | grep . || failed "process $pid of a local run has a TCP socket"
done
expect 0 heddle stop plain
wait $run
passed "a run that is not asked to listen has no TCP socket"

# it counts its workers: none is given up because the machine is busy
"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out near --workers 2 --devices 1 --listen 127.0.0.1:0 \
	--key key -q -s workers.detect=20s 2>log &
run=$!
where=$(listens near)
reach near 10
[ "$(for pid in $(descendants $run); do tcp_sockets "$pid"; done | wc -l)" -ge 3 ] ||
	failed "what listens is not seen"
expect 2 heddle worker --join "$where" --key other -q
says 'does not take this key'
expect 2 heddle worker --join "$where" --key key -s batch.global=240 -q
says 'what fixes the result differs'
touch taken
expect 2 heddle worker --join near --record-in far -q
says "records in the run's folder"
expect 2 heddle worker --join "$where" --key key --record-in taken/far -q
says 'no recording in taken/far'
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 --record-in far -q 2>log.guest &
guest=$!
has_members near 3
reach near $(($(step near) + 20))
ends_well near "two workers here, one over TLS"
ended $guest 75 "a guest of a run that was stopped"
expect 0 heddle trace merge near far -o both.hdt
same "$(grep -c "^worker [0-9]" out)" 3 "workers in a recording with a guest's"
! grep 'not aligned' out err || failed "the guest's clock is not aligned"
grep -q '"kind":"listening"' near/events.ndjson || failed "no event of the address"
for word in $(cat key) $(cat other); do
	! grep -rqF "$word" near log out err 2>/dev/null || failed "a key stands in a file of the run"
done
passed "a worker joins over TLS; a wrong key and another job are refused"

# a run that is left at once (^C ^C): its own worker reads that in its folder, and tells the guest
"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out left --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key key -q 2>log &
run=$!
where=$(listens left)
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
guest=$!
has_members left 2
own=$(heddle status left --json | grep -oE '"id":[0-9]{1,6},[^}]*"pid":[1-9][0-9]*' | grep -o '[0-9]*$')
kill -STOP "$own"                 # so that the step at hand does not end between the two
kill -INT "$run"
kill -TERM "$run"
ended "$run" 75 "a run that is asked twice"
kill -CONT "$own"
ended "$guest" 75 "a guest of a run that was left at once"
grep -q 'left: stopped at step [0-9]*: `heddle resume left` goes on' log.guest ||
	failed "the guest does not say why it leaves: $(cat log.guest)"
passed "a guest hears that a run was left at once"

# a run that did not listen is taken up by one that does, from elsewhere: workers and later coordinators go
# by what was said then
expect 0 heddle run long.yaml --out late --workers 1 --devices 1 --steps 100 -q
mkdir -p elsewhere && cd elsewhere || exit 1
"${paced[@]}" "$HEDDLE_BIN" resume ../late --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key ../key -q 2>log &
run=$!
cd ..
where=$(listens late)
reach late 110
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
guest=$!
has_members late 2
kill -9 "$run"
wait "$run" 2>/dev/null
await answers_now late || failed "no coordinator follows"
has_members late 2
reach late $(($(step late) + 20))
taken_over_ends_well late "a run that was taken up"
ended "$guest" 75 "a guest of a run taken up"
await test -f late/report.html || failed "late has no report"
grep -q '"key":"/' late/job.resolved.json || failed "the key's place depends on where one stands"
passed "a run that is taken up listens where it is asked to"

# the machine that coordinates is gone with all of its processes; guests hold the state until somebody serves
# the run again
"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out kept --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key key -q 2>log &
run=$!
where=$(listens kept)
"$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
guest=$!
has_members kept 2
reach kept 100
pid_of_local()
{
	heddle status "$1" --json | grep -oE '"id":[0-9]{1,6},[^}]*"pid":[1-9][0-9]*' | grep -o '[0-9]*$'
}
kill -9 "$(pid_of_local kept)"
await grep -q '"kind":"lost"' kept/events.ndjson || failed "the worker here is not missed"
has_members kept 2
kill -9 "$(pid_of_local kept)" "$run"
wait "$run" 2>/dev/null
"${paced[@]}" "$HEDDLE_BIN" serve --job kept --devices 1 -q 2>log &
run=$!
await answers_now kept || failed "the run is not served: $(cat log)"
has_members kept 2
reach kept $(($(step kept) + 20))
ends_well kept "a run that was served again"
ended "$guest" 75 "a guest that held the state"
! grep -q '"kind":"restore"' kept/events.ndjson || failed "what the guest held was thrown away"
plans_of kept 3
grep -qE '^cause .*: worker 1[0-9]{6}"' kept/plan/*.plan ||
	failed "no plan of the time when the guest was alone: $(grep -h '^cause' kept/plan/*.plan)"
passed "guests keep the state while no process of the run's machine is left; the coordinator records it"

"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out empty --workers 1 --devices 1 -q \
	-s checkpoint.every='20 steps' 2>log &
run=$!
reach empty 100
at=$(step empty)
kill -9 "$(pid_of_local empty)" "$run"
wait "$run" 2>/dev/null
"${paced[@]}" "$HEDDLE_BIN" serve --job empty --devices 1 -q 2>log &
run=$!
await answers_now empty || failed "the run is not served: $(cat log)"
reach empty $((at + 20))
ends_well empty "a run without a process"
grep -q '"kind":"restore"' empty/events.ndjson || failed "no coordinator looked at what is on disk"
passed "a run without a process is served again"

# a worker that stands still before it has joined: it calls the coordinator late. Without failpoints by hand,
# so not always in time
for try in 1 2 3 4 5; do
	HD_FAIL='wire.connect:delay=30000@1' "$HEDDLE_BIN" run long.yaml -s 'workers.detect=100 ms' \
		-s 'workers.min_wait=1 s' -s job.steps=50 --out "still$try" --workers 1 --devices 1 -q 2>err &
	run=$!
	# until it is a program of its own the one that starts it waits for it, and would for ever
	until child=$(pgrep -P $run | head -n 1) && [ "$child" ] &&
		! cmp -s "/proc/$child/cmdline" "/proc/$run/cmdline"; do :; done
	kill -STOP "$child"
	has_failpoints || {
		sleep 0.3
		[ "$(heddle status "still$try" --json | grep -o '"state":"starting"' | head -n 1)" ] || {
			kill -CONT "$child"
			kill "$run"
		}
	}
	status=0
	wait "$run" || status=$?
	[ $status -ne 10 ] || ! grep -q 'no worker joined' err || break          # it had joined by then
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
job: {name: csv, seed: 3, steps: 100000000}
model: {use: "builtin:mlp", args: {input: [3], hidden: [64], classes: 3}}
data: {kind: csv, path: there/rows.csv}
batch: {global: 120, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000 steps, keep: 2}
trace: {digest: 1}
workers: {detect: 500 ms}
END
	"${paced[@]}" "$HEDDLE_BIN" run csv.yaml --out csv --workers 1 --devices 1 --listen 127.0.0.1:0 \
		--key key -q 2>log &
	run=$!
	where=$(listens csv)
	mkdir -p elsewhere && cd elsewhere || exit 1
	expect 3 heddle worker --join "$where" --key ../key -q -s data.path=../here/rows.csv
	says 'are not those of the run'
	expect 3 heddle worker --join "$where" --key ../key -q -s data.path=../nowhere.csv
	says 'copy them, or say where they are by -s data.path=PATH'
	"$HEDDLE_BIN" worker --join "$where" --key ../key -q --devices 1 -s data.path=../copy.csv \
		2>../log.guest &
	guest=$!
	cd ..
	has_members csv 2
	reach csv $(($(step csv) + 20))
	stops_with_bits_of_one csv csv.yaml "a guest whose data lie elsewhere"
	says IDENTICAL
	ended $guest 75 "a guest whose data lie elsewhere"
	passed "data that are absent or other are refused; a copy elsewhere serves"
fi

# what joiners could not be sent is refused at the start
far=$PWD deep=$(printf 'd%.0s' $(seq 200))
for _ in $(seq 20); do mkdir $deep && cd $deep || exit 1; done
expect 3 heddle run "$far/long.yaml" --out "$far/deep" --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key "$far/key" -q
says 'a worker that joins this run from another machine needs it'
cd "$far" || exit 1
passed "a run whose job cannot be sent does not listen"

# a model in a file: found where the run was begun, or named
expect 0 heddle model show long.yaml -o long.graph
sed 's/^model:.*/model: {use: "graph:long.graph"}/; s/name: long/name: file/' long.yaml >file.yaml
"${paced[@]}" "$HEDDLE_BIN" run file.yaml --out file --workers 1 --devices 1 --listen 127.0.0.1:0 \
	--key key -q 2>log &
run=$!
where=$(listens file)
reach file 5
mkdir -p elsewhere && cd elsewhere || exit 1
mv ../long.graph ../moved.graph
expect 3 heddle worker --join "$where" --key ../key -q
says 'model.use of the run names this file: copy it to long.graph'
mv ../moved.graph ../long.graph
"$HEDDLE_BIN" worker --join "$where" --key ../key -q --devices 1 2>../log.guest &
guest=$!
cd ..
has_members file 2
reach file $(($(step file) + 5))
stops_with_bits_of_one file file.yaml "a model in a file"
ended $guest 75 "a guest with a model in a file"
passed "a model in a file is found where the run was begun, or named"

# a machine of other kernels: the library's differ by what it may use of a processor
cat >lenet.yaml <<END
job: {name: lenet, seed: 4, steps: 1000000}
model: {use: "builtin:lenet", args: {height: 16, width: 16, classes: 3}}
data: {kind: synthetic, count: 500}
batch: {global: 96, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 800 steps, keep: 2}
END
bits()
{
	ONEDNN_MAX_CPU_ISA=$1 "$HEDDLE_BIN" run lenet.yaml -s job.kernels=library -s job.steps=2 \
		--out "bits$1" --devices 1 --json -q | grep -o '"digest":"[^"]*"'
}
if [ "$(bits ALL)" != "$(bits SSE41)" ]; then
	begins()       # KERNELS
	{
		"$HEDDLE_BIN" run lenet.yaml -s job.kernels_auto=$1 --out k-$1 --workers 1 --devices 1 \
			--listen 127.0.0.1:0 --key key -q 2>log &
		run=$!
		where=$(listens k-$1)
		reach k-$1 10
	}
	begins library
	ONEDNN_MAX_CPU_ISA=SSE41 expect 2 heddle worker --join "$where" --key key --devices 1 -q
	says 'use a like machine, or start with kernels: portable'
	expect 0 heddle stop k-library
	ended $run 75 "k-library"
	begins portable
	ONEDNN_MAX_CPU_ISA=SSE41 "$HEDDLE_BIN" worker --join "$where" --key key --devices 1 -q 2>log.guest &
	guest=$!
	has_members k-portable 2
	reach k-portable $(($(step k-portable) + 5))
	stops_with_bits_of_one k-portable lenet.yaml "a guest of other kernels" -s job.kernels_auto=portable
	says IDENTICAL
	ended $guest 75 "a guest of other kernels"
	passed "other kernels: refused with the way out, and welcome where they are portable"
else
	echo "skip: a machine of other kernels (the library's are the same here whatever the processor)"
fi

HEDDLE_BIN=$HEDDLE_BIN expect 0 "$SOURCE_DIR/examples/launch/two-machines.sh"
passed "the example runs"
