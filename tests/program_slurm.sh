#!/bin/bash
# A run whose workers are batch jobs of Slurm: they come, are preempted, requeued, given back. Whatever comes
# the bits are those of one device, and nothing is left in squeue or ps. Against a real Slurm of four nodes on
# this machine, over the socket of slurmrestd where there is one, until that ends; without one against
# slurm_fake.sh. SLURM_LONG=1: the controller and a node end, too.
. "$(dirname "$0")/program.sh"
. "$SOURCE_DIR/tests/slurm.sh"
. "$SOURCE_DIR/tests/remote.sh"
trap 'slurm_end; end_jobs; rm -rf "$work"' EXIT
slurm_is_real || echo "skip: a real Slurm (root, slurmctld slurmd slurm-client munge); against a stand-in"
slurm_begin || { tail -n 5 "$work"/slurm/log/* "$work"/slurm/munge/*.log; failed "Slurm does not begin"; }

now() { date +%s%N; }
since() { echo "$((($(now) - $1) / 1000000)) ms"; }
states() { squeue -h -r -t all -O 'JobArrayID:|,State:|,exit_code:|,RestartCnt:|,NodeList:|,Reason:|'; }
are() { [ "$(states | grep -c "|$1|")" = "$2" ]; }
none_left() { ! states | grep -qE '[|](RUNNING|PENDING|COMPLETING|CONFIGURING)[|]'; }
# workers of the run, wherever
processes() { pgrep -af -- "--join $work/$1 --far" || true; }
is_clean()      # run
{
	none_left || failed "left in squeue: $(states)"
	[ -z "$(processes "$1")" ] || failed "left in ps: $(processes "$1")"
	[ -z "$(ls "$1/far" 2>/dev/null)" ] || failed "marks of far workers are left: $(ls "$1/far")"
}
# a machine that is too full loses one now and then
lost() { grep -c '"kind":"lost"' "$1/events.ndjson"; }
begins()        # run, nodes...: in the background, its process in $run
{
	local name=$1
	shift
	"${paced[@]}" "${rest[@]}" "$HEDDLE_BIN" run long.yaml --out "$name" --launch slurm --devices 1 \
		--nodes "$@" 2>"log.$name" &
	run=$!
}

# slurmrestd v0.0.38 has no field for the signal to a batch script
rest=()
if slurm_rest_begins; then
	echo 'launch: {slurm: {signal: none}}' >>long.yaml
else
	echo "skip: slurmrestd; Slurm is asked by its commands alone"
fi
asked() { [ "${#rest[@]}" = 0 ] || grep -qE "$1" "$work/slurm/log/slurmrestd.log"; }

expect 2 heddle run long.yaml --launch slurm
says 'say on how many nodes'
expect 2 heddle run long.yaml --launch slurm --nodes 3..2
says 'N not above M'
expect 2 heddle run long.yaml --nodes 2
says 'launch.kind is local'
expect 2 heddle run long.yaml --launch slurm --nodes 2 --workers 2
says 'say --nodes N'
expect 2 heddle run long.yaml --launch slurm --nodes 2 -s launch.slurm.extra='["--array=0-9"]'
says "is heddle's own"
expect 2 heddle run long.yaml --launch slurm --nodes 1 -s launch.slurm.partition=nope
says 'sinfo -s'
expect 2 heddle run long.yaml --print
says 'launch.kind is local'
heddle run long.yaml --out grow --devices 1 --launch slurm --nodes 2..4 --print >printed || failed "exit $?"
grep -q -e '--array=0-3' printed || failed "not shown how it is submitted: $(cat printed)"
[ ! -e grow ] && [ -z "$(states)" ] || failed "--print submits: $(states; ls)"
[ -z "$(ls runs 2>/dev/null)" ] || failed "a run that was refused left its folder"
expect 2 heddle run long.yaml --out big --launch slurm --nodes 1 -s launch.slurm.extra='["--mem=9T"]'
says 'no node has what launch.slurm.extra asks for'
passed "what makes no sense is refused before anything is submitted"

at=$(now)
begins grow 2..4 -s workers.detect=20s              # those that are lost are counted
has_members grow 4
echo "start to 4 members: $(since "$at")"
reach grow 20
same "$(sed '/^$/,$d; /job-name/d' printed)" "$(sed '/job-name/d' grow/launch.sh)" "what --print showed"
at=$(now)
before=$(lost grow)
slurm_preempts k1
has_members grow 3
echo "preemption to 3 members: $(since "$at")"
await grep -q 'is in the queue again' log.grow || failed "a requeued job is not named"
are PENDING 1 || failed "the preempted job is not in the queue: $(states)"
same "$(lost grow)" "$before" "workers that are lost where one was preempted: it did not leave"
passed "a preempted node hands over, its job is in the queue again"
await grep -q 'wait in Slurm.s queue' log.grow || failed "the run does not say why a node waits"
heddle status grow --json | grep -q '"why":"1 wait in the queue of slurm' || failed "status does not say why"
at=$(now)
expect 0 heddle scale grow 2 --wait
await are RUNNING "$(slurm_is_real && echo 3 || echo 2)" ||
	failed "jobs of workers that left run on: $(states)"
await are PENDING 0 || failed "what waits is not taken back: $(states)"
asked 'POST .*job/submit' && asked 'GET .*jobs' && asked 'DELETE .*job/' &&
	! grep -q 'commands are used' log.grow ||
	failed "slurmrestd is not asked: $(grep slurmrestd log.grow)"
slurm_rest_ends
echo "4 to 2 nodes: $(since "$at")"
at=$(now)
expect 0 heddle scale grow 3 --wait
echo "2 to 3 nodes: $(since "$at")"
reach grow $(($(step grow) + 10))
at=$(now)
[ "${#rest[@]}" = 0 ] || grep -q "slurmrestd at .*Slurm's commands are used" log.grow ||
	failed "nothing is said of a slurmrestd that is gone: $(cat log.grow)"
rest=()
slurm_is_real && scancel -n wrap
ends_well grow "nodes that came and went"
await none_left
is_clean grow
echo "stop, digests compared: $(since "$at")"
passed "nodes come and go, and the bits are those of one device"

begins first 2
has_members first 2
kill -INT $run
ended $run 130 "a run that Ctrl-C ends"
is_clean first
expect 0 heddle ckpt digest first
passed "Ctrl-C leaves a checkpoint and no job"

# the coordinator is killed: what waits is taken back by the guard
touch "$work/slurm/closed"
begins killed 1..6
has_pending() { [ "$(states | grep -c '|PENDING|')" -ge 1 ]; }
await has_pending || failed "none waits: $(states)"
kill -9 $run
wait $run 2>/dev/null
await are PENDING 0 || failed "jobs of a killed coordinator wait on: $(states)"
rm -f "$work/slurm/closed"
scancel --name="$(sed -n 's/^#SBATCH --job-name=//p' killed/launch.sh)"
await none_left || failed "jobs are left: $(states)"
passed "what waits is taken back if the coordinator is killed"

# hosts by ssh, whose part is played by a shell
mkdir "$work/ssh"
printf '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\nexec sh -c "$2"\n' >"$work/ssh/ssh"
chmod +x "$work/ssh/ssh"
PATH=$work/ssh:$PATH
printf '127.0.0.1 slots=2 # the lab\n127.0.0.2\n' >hosts.txt
expect 2 heddle run long.yaml --launch ssh --nodes 4
says 'has 3 slots'
"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out far --launch ssh --devices 1 --nodes 2..3 -q 2>log.far &
run=$!
has_members far 3
reach far 10
cp -r far copy
rm -f copy/far/*
expect 2 heddle worker --join copy --far --devices 1 -q
says "is not this run's, but a copy"
has_members far 3
kill -9 "$(pgrep -f -- "--join $work/far --far" | head -n 1)"
await grep -q '"kind":"lost"' far/events.ndjson || failed "a worker that was killed is not missed"
has_members far 3
reach far $(($(step far) + 10))
ends_well far "hosts by ssh"
is_clean far
passed "hosts by ssh: one that dies is started again, a copy of the folder is refused"

# what sched advise would start next is what Slurm starts; SLURM_LONG=1: in 24 situations, beside other
# policies
slurm_is_real || exit 0
at=$(now)
[ "${SLURM_LONG:-}" ] && situations='24 1 all' || situations='1 1'
python3 "$SOURCE_DIR/tests/slurm_advise.py" "$HEDDLE_BIN" $situations >advised 2>&1 ||
	failed "advice is not what Slurm does: $(cat advised)"
cat advised
echo "advice and Slurm compared: $(since "$at")"
passed "sched advise by Slurm's order names the jobs that Slurm starts, and none that cannot"

[ "${SLURM_LONG:-}" ] || exit 0
scancel -u root
await none_left
begins long 2..4
has_members long 4
slurm_controller_ends
at=$(now)
await grep -q 'Unable to contact slurm controller' log.long || failed "a controller that is gone is not named"
echo "controller gone, said after: $(since "$at")"
reach long $(($(step long) + 50))
has_now long 4 || failed "workers go with the controller"
slurm_controller_begins
at=$(now)
expect 0 heddle scale long 3 --wait
await are RUNNING 3
expect 0 heddle scale long 4 --wait
echo "controller back, 4 to 3 to 4 nodes: $(since "$at")"
passed "workers go on without the controller, and a run grows once it is back"

# a node loses its power: slurmd, slurmstepd and worker are gone at once, and the controller hears nothing
node=$(states | grep RUNNING | head -n 1 | cut -d '|' -f 5)
dies=$(slurm_pid "run/slurmd.$node.pid")
kill -9 "$dies" $(grep -lz "^SLURMD_NODENAME=$node$" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3) \
	$(pgrep -P "$dies") 2>/dev/null
at=$(now)
has_members long 3
echo "node lost to 3 members: $(since "$at")"
slurm_node_begins "$node"
has_members long 4
echo "node back, 4 members: $(since "$at")"
ends_well long "a controller restarted, a node lost"
is_clean long
passed "a node that is lost costs its part of a step, and is taken in again"
