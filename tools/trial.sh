#!/bin/bash
# Disturbed runs, judged from outside: what a user's machine does to a run, and what a user would look at
# afterwards.
#
#   tools/trial.sh PROGRAM [RUNS [FIRST_SEED [FOLDER]]]         10 runs from seed 1 in a new folder
#
# Run SEED takes scenario SEED of the table below in turn, and draws its job, workers and instants from SEED.
# None of the program's own chaos verbs or failpoints is used: signals, /proc, a full file system, a changed
# file, a closed terminal. The judge is the SHA-256 of the last checkpoint's safetensors, against one
# undisturbed process of one device. A run fails if
#   bits      its last checkpoint has other bytes than the undisturbed run's
# done a command that ended with 0, or a scheduler's job that is `done`, left no checkpoint of the last step
# still processes of it live and no step is committed for HD_TRIAL_STILL seconds (30), or it does not end at
# all
#   silent    a command ended with neither 0, 75 nor a signal of ours, and said nothing on stderr
#   records   steps have no line in metrics.ndjson and no event says how many; or a line is no record
#   left      processes of it live after its end
# A line for each run, then the sum; exit 1 if one failed. What a failed run left stays in FOLDER/run-SEED.
# HD_TRIAL_STEPS: of a run (600).
set -u
bin=$(realpath "$1") runs=${2:-10} first=${3:-1} folder=$(realpath -m "${4:-$(mktemp -d)}") \
	still=${HD_TRIAL_STILL:-30}
most=${HD_TRIAL_STEPS:-600}
mkdir -p "$folder" && cd "$folder" || exit 1
export NO_COLOR=1
unset HD_FAIL

# scenario | what is done to the run
scenarios='kills     | three kills of any process, at any instant
first     | a kill in the first second of the run, before all have joined
stop      | stopped, and a process killed while it stops; then resumed
resume    | all killed, resumed, and a kill in the first second of that
evaluate  | kills while it evaluates every few steps
data      | a hundredth of the data file changed, then a worker killed; the file put back
pair      | the coordinator and a worker killed at once
disk      | no space left on its file system for a while
terminal  | its terminal closed
drain     | a job of a scheduler that drains; its coordinator killed meanwhile
pause     | a process stopped for longer than the patience of the others, then let go on
all       | every process killed at once, then again during the next start'

# ---- the run of this seed ----

# Processes of the run: the program's, with the run's mark in their environment.
pids()
{
	local p
	for p in $(grep -lzs "^HD_TRIAL=$mark\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
		[ "$(readlink "/proc/$p/exe" 2>/dev/null)" = "$bin" ] && echo "$p"
	done
}
is_worker() { { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null | grep -q ' worker '; }
victim()                # any|worker|coordinator: one of them, drawn; nothing if there is none
{
	local p all=()
	for p in $(pids); do
		case $1 in
		worker) is_worker "$p" || continue ;;
		coordinator) is_worker "$p" && continue ;;
		esac
		all+=("$p")
	done
	[ ${#all[@]} -eq 0 ] || echo "${all[RANDOM % ${#all[@]}]}"
}
strike()                # SIGNAL KIND: notes what was done
{
	local p kind=worker
	p=$(victim "$2") && [ "$p" ] || return 1
	is_worker "$p" || kind=coordinator
	kill "-$1" "$p" 2>/dev/null && did+=" $1:$kind"
}
everybody() { local p; for p in $(pids); do kill "-$1" "$p" 2>/dev/null; done; did+=" $1:all"; }
snooze() { read -r -t "$(awk -v ms="$1" 'BEGIN { print ms / 1000 }')" <> <(:); }       # milliseconds
draw() { snooze $((RANDOM % $1)); }

recorded() { cat "$dir/metrics.ndjson" 2>/dev/null | wc -l; }
ended() { [ -f "$dir/ckpt/step-$last/MANIFEST.json" ]; }
begin()                 # COMMAND...: in the background; its exit code comes to FOLDER/code.N
{
	commands=$((commands + 1))
	(
		HD_TRIAL=$mark "$bin" "$@" -q >>"$out" 2>"$run/err.$commands" &
		echo $! >"$run/pid.$commands"
		wait $!
		echo "$? $*" >"$run/code.$commands"
	) 2>/dev/null &
	disown
	until [ -s "$run/pid.$commands" ]; do snooze 5; done
	newest=$(cat "$run/pid.$commands")
}
start() { begin run job.yaml --out "$dir" --workers "$workers" --devices 1; }
reach()                 # RECORDS: until so many steps have a record
{
	local until=$((SECONDS + 10 * still))
	while [ "$(recorded)" -lt "$1" ] && [ "$(pids)" ] && [ $SECONDS -lt $until ]; do snooze 20; done
}
middle() { reach $((steps / 20 + RANDOM % (steps / 2))); }
fault() { verdict+=" $1"; }

# Waits until nothing of it lives, watches that steps go on; resumes what did not come to its end, as a user
# would.
finish()
{
	local n last_n=-1 since=$SECONDS tries=0
	while :; do
		if [ -z "$(pids)" ]; then
			snooze 50       # a process that is being born has no mark yet
			[ -z "$(pids)" ] || continue
			ended && return
			[ $tries -lt 8 ] || { fault "still(eight resumes)"; return; }
			tries=$((tries + 1)) since=$SECONDS
			if [ -f "$dir/job.resolved.json" ] && [ -d "$dir/ckpt" ]; then begin resume "$dir" \
				--workers "$workers"
			else rm -rf "$dir"; start; fi
			continue
		fi
		n="$(recorded) $(ls "$dir/ckpt" 2>/dev/null | tail -n 1)"
		[ "$n" = "$last_n" ] || since=$SECONDS last_n=$n
		if [ $((SECONDS - since)) -gt "$still" ]; then
			fault "still(${n% *} records)"
			"$bin" status "$dir" >"$run/status" 2>&1
			return
		fi
		snooze 50
	done
}

# ---- scenarios: each begins the run, disturbs it, and leaves the rest to finish ----

do_kills() { start; for _ in 1 2 3; do reach $(($(recorded) + 20 + RANDOM % 100)); strike KILL any; done; }
do_first()
{
	start
	draw 1000
	strike KILL any
	draw 300
	[ $((RANDOM % 2)) -eq 0 ] || strike KILL any
}
do_stop()
{
	start
	middle
	begin stop "$dir"
	draw 300
	strike KILL coordinator
	[ $((RANDOM % 2)) -eq 0 ] || strike KILL any
}
do_resume()
{
	start
	middle
	everybody KILL
	snooze 100
	ended || begin resume "$dir" --workers "$workers"
	draw 1000
	strike KILL any
}
do_evaluate() { start; for _ in 1 2 3; do reach $(($(recorded) + 10 + RANDOM % 60)); strike KILL any; done; }
do_data()
{
	start
	middle
	cp data.txt kept
	# the same size, another time of change, each hundredth byte another
	awk 'BEGIN { srand(7) } { n = int(length($0) / 2); print substr($0, 1, n) "#" substr($0, n + 2) }' \
		kept | head -c "$(stat -c %s kept)" >other
	# another file under the name, or other bytes in the file that is mapped
	if [ $((RANDOM % 2)) -eq 0 ]; then
		mv other data.txt
		did+=" renamed"
	else
		cat other >data.txt
		did+=" written"
	fi
	strike KILL worker
	snooze $((1000 + RANDOM % 1500))
	strike KILL worker
	snooze 1000
	mv kept data.txt
}
do_pair()
{
	start
	middle
	strike KILL coordinator
	strike KILL worker
	draw 400
	[ $((RANDOM % 2)) -eq 0 ] || strike KILL any
}
do_disk()
{
	start
	middle
	head -c 100000000 /dev/zero >"$disk/filler" 2>/dev/null
	did+=" full"
	snooze $((500 + RANDOM % 2000))
	[ $((RANDOM % 2)) -eq 0 ] || strike KILL any
	snooze 500
	rm -f "$disk/filler"
}
# The terminal is a pseudo-terminal whose owner dies.
do_terminal()
{
	HD_TRIAL=$mark script -qfc "exec '$bin' run job.yaml --out '$dir' --workers $workers --devices 1" \
		/dev/null >>"$out" 2>&1 </dev/null &
	local terminal=$!
	disown
	middle
	kill -9 $terminal 2>/dev/null
	did+=" closed"
}
do_pause()
{
	local p
	start
	middle
	p=$(victim any)
	[ "$p" ] || return
	kill -STOP "$p" && did+=" STOP"
	snooze $((500 + RANDOM % 3000))
	[ $((RANDOM % 2)) -eq 0 ] || strike KILL any
	kill -CONT "$p" 2>/dev/null
}
do_all()
{
	start
	middle
	everybody KILL
	snooze 50
	ended || {
		begin resume "$dir" --workers "$workers"
		draw 800
		everybody KILL
	}
}

# A scheduler with one job; it is asked to drain, the job's coordinator dies meanwhile, another scheduler goes
# on.
serve() { begin serve --dir "$run/D" --pool "cpu:$workers" --policy fifo --round 1 "$@"; }
job_state()
{
	"$bin" jobs -C "$run/D" --json 2>/dev/null | grep -o '"state":"[a-z]*"' | head -n 1 | cut -d'"' -f4
}
do_drain()
{
	local scheduler p until
	serve --drain
	scheduler=$newest
	until=$((SECONDS + 10 * still))
	until HD_TRIAL=$mark "$bin" submit job.yaml -C "$run/D" --scale "$workers" >>"$out" \
		2>"$run/err.submit" || [ $SECONDS -gt $until ]; do
		snooze 100
	done
	until [ -n "$(ls "$run/D/runs" 2>/dev/null)" ] || [ $SECONDS -gt $until ]; do snooze 50; done
	dir=$(echo "$run"/D/runs/*)
	middle
	kill -TERM "$scheduler"
	did+=" drain"
	draw 1000
	for p in $(pids); do
		[ "$p" = "$scheduler" ] || is_worker "$p" || { kill -KILL "$p" && did+=" KILL:coordinator"; }
	done
	until=$((SECONDS + 10 * still))
	while kill -0 "$scheduler" 2>/dev/null && [ $SECONDS -lt $until ]; do snooze 50; done
	serve
	until=$((SECONDS + 10 * still))
	until case $(job_state) in done|failed|cancelled) true ;; *) false ;; esac ||
		[ $SECONDS -gt $until ]; do snooze 100; done
	[ "$(job_state)" = done ] || fault "still(job $(job_state))"
	[ "$(job_state)" != done ] || ended || fault "done(job)"
	kill -TERM "$newest"
	snooze 200
}

# ---- jobs and the judge ----

write_job()             # VARIANT: what is learned
{
	local sync=allreduce evaluate=0 pace=4 model data
	case $1 in
	mlp|sharded|slow)
		model='{use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [120, 60], classes: 4}}'
		data='{kind: synthetic, count: 1000}' ;;
	*)
		args='layers: 1, width: 16, heads: 2, context: 16, vocab: 256, dropout: 0.1'
		model="{use: \"builtin:gpt\", args: {$args}}"
		data='{kind: text, path: data.txt, split: {train: 0.9, valid: 0.1}}' ;;
	esac
	[ "$1" != sharded ] || sync=sharded
	[ "$1" != judged ] || evaluate=7
	[ "$1" != slow ] || pace=150
	cat <<-END
	job: {name: $1, seed: 3, steps: $steps}
	model: $model
	data: $data
	batch: {global: 24, virtual_nodes: 12}
	optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
	checkpoint: {every: $((steps / 15)) steps, keep: 2}
	eval: {every: $evaluate}
	comm: {sync: $sync}
	trace: {digest: 1, samples: true}
	workers: {detect: 500 ms, pace: $pace ms}
	END
}
write_data()
{
	awk 'BEGIN {
		srand(5)
		for (i = 0; i < 2000; i++) {
			line = ""
			for (j = 0; j < 40; j++) line = line sprintf("%c", 97 + int(rand() * 26))
			print line
		}
	}'
}
sums() { (cd "$1/ckpt/step-$last" 2>/dev/null && sha256sum ./*.safetensors); }

# of slow steps few, so that a stop or a drain takes a while
steps_of() { case $1 in slow) echo $((most / 10)) ;; *) echo "$most" ;; esac; }

# The undisturbed run of a job: one process, one device; once for all runs.
twin()
{
	local last
	last=$(printf %09d "$(steps_of "$1")")
	[ -s "twin-$1.sums" ] && return
	mkdir -p "twin-$1" && (
		steps=$(steps_of "$1")
		cd "twin-$1" && write_data >data.txt && write_job "$1" >job.yaml && rm -rf run &&
		"$bin" run job.yaml --out run --devices 1 -q -s workers.pace=0s
	) && sums "twin-$1/run" >"twin-$1.sums" && [ -s "twin-$1.sums" ]
}

judge()
{
	local code said k missing named lines
	for k in $(seq $commands); do
		[ -s "$run/code.$k" ] || continue
		read -r code said <"$run/code.$k"
		[ "$code" = 0 ] && [[ $said = run* || $said = resume* ]] && ! ended && fault "done($said)"
		case $code in 0|75|129|130|137|143) ;; *) [ -s "$run/err.$k" ] ||
			fault "silent(exit $code of $said)" ;; esac
		case $code in 1|13[469]) [ "$code" = 137 ] || fault "broken(exit $code of $said)" ;; esac
	done
	ended && [ "$(sums "$dir")" != "$(cat "../twin-$variant.sums")" ] && fault bits
	ended || fault unfinished
	lines=$(grep -c -v '^{"v":1,.*}$' "$dir/metrics.ndjson")
	[ "$lines" -eq 0 ] || fault "records($lines lines are none)"
	recorded=$(grep -o '^{"v":1,"step":[0-9]*' "$dir/metrics.ndjson" | cut -d: -f3 | sort -u | wc -l)
	missing=$((steps - recorded))
	named=$(grep '"kind":"unrecorded"' "$dir/events.ndjson" | grep -o '"text":"[0-9]*' | cut -d'"' -f4 |
		awk '{ n += $1 } END { print n + 0 }')
	[ $missing -le "$named" ] || fault "records($missing are missing, $named named)"
	[ -z "$(pids)" ] || { fault "left($(pids | wc -l))"; everybody KILL; }
}

one_run()               # SEED
{
	local scenario=${names[$(($1 % ${#names[@]}))]} start=$SECONDS newest=
	RANDOM=$1
	mark="$$-$1" run=$folder/run-$1 commands=0 did= verdict=
	workers=$((2 + RANDOM % 3))
	case $scenario in
	stop|drain) variants=(slow slow mlp text) variant=${variants[RANDOM % 4]} ;;
	data) variant=text ;;
	evaluate) variant=judged ;;
	*) variants=(mlp sharded text) variant=${variants[RANDOM % 3]} ;;
	esac
	steps=$(steps_of "$variant") last=$(printf %09d "$(steps_of "$variant")")
	dir=$run/run out=$run/out disk=
	twin "$variant" || { echo "seed $1: the undisturbed run of $variant failed"; return 1; }
	rm -rf "$run" && mkdir "$run" && cd "$run" || return 1
	write_data >data.txt
	write_job "$variant" >job.yaml
	if [ "$scenario" = disk ]; then
		mkdir disk && mount -t tmpfs -o size=24m tmpfs disk 2>/dev/null || {
			echo "skip: seed $1, disk: no file system can be mounted here"
			cd .. && rm -rf "$run"
			return 0
		}
		disk=$run/disk dir=$run/disk/run
	fi
	"do_$scenario"
	[ -n "$verdict" ] || finish
	judge
	cd "$folder" || return 1
	echo "seed $1, $scenario, $variant, $workers workers: $did, $((SECONDS - start)) s:${verdict:- ok}"
	if [ "$verdict" ] && [ "$disk" ]; then cp -r "$disk" "$run/left"; fi
	[ -z "$disk" ] || umount "$disk"
	[ -n "$verdict" ] || rm -rf "$run"
	[ -z "$verdict" ]
}

clear_out()
{
	local p
	for p in $(grep -lzs "^HD_TRIAL=$$-" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
		kill -9 "$p"
	done
	grep -o " $folder/[^ ]*" /proc/mounts | xargs -r umount 2>/dev/null
}
trap clear_out EXIT
mapfile -t names < <(cut -d'|' -f1 <<<"$scenarios" | tr -d ' ')
failed=0
for seed in $(seq "$first" $((first + runs - 1))); do
	one_run "$seed" || failed=$((failed + 1))
done
say=; [ $failed -eq 0 ] || say="; see $folder"
echo "$runs runs, $failed failed$say"
[ $failed -eq 0 ]
