#!/bin/bash
# A scheduler over two pools: jobs are started, moved, preempted and resumed, and the scheduler itself is
# killed at any instant; every job ends once, with the bits of its undisturbed run.
#
# HD_CLUSTER_KILLS (20): how many times the scheduler is killed; HD_CLUSTER_SEED: of the instants.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
kills=${HD_CLUSTER_KILLS:-20} RANDOM=${HD_CLUSTER_SEED:-1}
dir=$work/D pid=

# What a scheduler started outlives it: the seats name what is there.
failed() { echo "FAILED: $*"; tail -n 15 out err serve.err 2>/dev/null; exit 1; }

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
post() { ask "$1" -H 'Content-Type: application/json' --data-binary "$2"; }
text() { sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' "$1" | tr -d '\n'; }
submit() { post /v1/jobs "{\"job\":\"$(text "$1")\",\"folder\":\"$work\",\"key\":\"$2\"${3:+,$3}}"; }
serve()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool fast:1:2,slow:1:1 "$@" >>serve.out 2>>serve.err & pid=$!
	disown
	up
}
up()
{
	for _ in $(seq 2400); do
		ask /v1/status && [ -s out ] && return
		sleep 0.05
	done
	failed "the scheduler does not answer: $(tail -n 3 serve.err)"
}
state() { ask "/v1/jobs/$1" && number state; }
reach()
{
	for _ in $(seq "${3:-3000}"); do
		[ "$(state "$1")" = "$2" ] && return
		sleep 0.1
	done
	failed "job $1 is $(state "$1"), not $2: $(cat out; tail -n 20 serve.err)"
}
starts() { grep -c job_start "$dir/runs/$1-tiny/events.ndjson"; }
ends()
{
	kill "$pid"
	for _ in $(seq 2400); do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.05
	done
	failed "the scheduler does not end"
}

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 700}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [200, 200], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
END

# ---- refusals ----

expect 2 heddle serve --dir "$dir"
says 'which devices'
expect 2 heddle serve --dir "$dir" --pool fast
says 'write TYPE:N'
expect 2 heddle serve --dir "$dir" --pool a:1,a:2
says 'already'
expect 2 heddle serve --dir "$dir" --pool a:1 --policy nosuch
expect 2 heddle serve --dir "$dir" --pool a:1 --policy gandiva
says 'two jobs on a device'
expect 2 heddle serve
says '--dir DIR'
passed "what cannot be served is refused with what would be right"

# ---- one job, and a second scheduler ----

HEDDLE_OPTIM_LR=0.5 serve --policy fifo --round 2       # what is set where it serves is not in its jobs
expect 1 heddle serve --dir "$dir" --pool fast:1:2,slow:1:1
says 'another scheduler'
grep -q 'devices differ by' err && failed "it set quotas in a folder that another one serves"
expect 0 heddle run job.yaml --out alone -q --devices 1
want=$(heddle ckpt digest alone)
submit job.yaml first '"rates":{"slow":0}'
same "$(number id)" 1 "the first id"
submit job.yaml first '"rates":{"slow":0}'
same "$(number id)" 1 "the same submission again"
submit job.yaml first
says 'is of job 1 (tiny), which has another order'
post /v1/jobs '{"job":"nonsense: 1","folder":"/"}'
says 'no table nonsense'
post /v1/jobs "{\"job\":\"$(text job.yaml)\",\"folder\":\"$work\",\"name\":\"7\"}"
says 'give it a letter'
post /v1/jobs "{\"job\":\"$(text job.yaml)\",\"folder\":\"$work\",\"rates\":{\"none\":1}}"
says 'no type of device'
reach 1 done 6000
part() { number "$1_ms"; }
same "$(($(part useful) + $(part redundant) + $(part bubble) + $(part pause) + $(part redo) +
	$(part rebuild) + $(part waiting) + $(part boot)))" "$(part paid)" "the parts of what was paid"
[ "$(part paid)" -gt 0 ] || failed "nothing was paid: $(cat out)"
same "$(number digest)" "$want" "digest of a job of the scheduler and of a run"
ask '/v1/events/past?job=1'
says 'on fast-0'
ask /v1/jobs/77
says 'no job 77'
passed "a job runs on the type that it can run on, once, with the same bits"

# ---- resize, cancel, priority, a device that goes ----

# it ends when somebody ends it, and takes no processor from others until then
sed 's/steps: 700/steps: 5000000/; $a workers: {pace: 3 ms}' job.yaml >long.yaml
submit long.yaml long
reach 2 running
post /v1/devices/fast-0 '{"usable":false}'
for _ in $(seq 3000); do ask /v1/jobs/2; grep -q '"devices":\["slow-0"\]' out && break; sleep 0.1; done
says '"devices":["slow-0"]'
post /v1/devices/fast-0 '{"usable":true}'
post /v1/jobs/2/priority '{"priority":3}'
same "$(number priority)" 3 "another priority"
ask /v1/jobs/2/why
says '"code":"RUNS"'
post /v1/jobs/2/cancel '{}'
reach 2 cancelled
post /v1/jobs/2/cancel '{}'
says 'is cancelled'
for _ in $(seq 3000); do ask /v1/pools; grep -q '"state":"free".*"state":"free"' out && break; sleep 0.1; done
says '"state":"free"'
passed "a job goes on elsewhere when its device goes, and ends when it is cancelled"

# ---- to drain is to commit: the same bits later ----

sed 's/steps: 700/steps: 5000/' job.yaml >drain.yaml
expect 0 heddle run drain.yaml --out drained -q --devices 1
submit drain.yaml drained
for _ in $(seq 3000); do case $(state 3) in running | done) break ;; esac; sleep 0.05; done
post /v1/stop '{"drain":true}'
for _ in $(seq 3000); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
kill -0 "$pid" 2>/dev/null && failed "the scheduler did not end after its jobs left"
ls "$dir"/runs/3-tiny/ckpt | grep -q step- || grep -q '"exit":0' "$dir"/runs/3-tiny/end.json ||
	failed "job 3 did not commit"
same "$(starts 3)" 1 "runs of job 3"
cp "$dir/runs/3-tiny/end.json" before.json
# A coordinator that comes when its lease has ended does not begin it again: a scheduler that died may have
# ordered two.
expect 1 timeout 300 "$HEDDLE_BIN" serve --job "$dir/runs/3-tiny" --workers 1 -q
says 'lease 1 has ended'
# nor does a worker that comes then, and finds none to join: it leaves
expect 11 timeout 300 "$HEDDLE_BIN" worker --join "$dir/runs/3-tiny" --devices 1 -q
says 'no worker is wanted until'
cmp -s before.json "$dir/runs/3-tiny/end.json" ||
	failed "lease 1 ended twice: $(cat "$dir/runs/3-tiny/end.json")"
same "$(starts 3)" 1 "runs of job 3, ordered twice"
# it may have been done before it was asked to leave
leases=$(grep -q '"lease":1,"exit":0' before.json && echo 1 || echo 2)
# One begins late, with the lease that is over (of another's end it knows nothing): the next lease's is
# another one.
sits() { read -r _ _ holder _ <"$dir/runs/3-tiny/seat" && [ "$holder" = "$late" ]; }
if [ "$leases" = 2 ]; then
	rm "$dir/runs/3-tiny/end.json"
	"$HEDDLE_BIN" serve --job "$dir/runs/3-tiny" --workers 1 -q 2>late &
	late=$!
	await sits || failed "the latecomer drives nothing: $(cat late)"
fi
serve --policy fifo --round 2
reach 3 done 6000
same "$(number leases)" "$leases" "leases of a job that committed and went on"
grep -q "\"lease\":$leases," "$dir/runs/3-tiny/end.json" ||
	failed "its end is of another lease: $(cat "$dir/runs/3-tiny/end.json")"
same "$(number digest)" "$(heddle ckpt digest drained)" "digest of a job that committed and went on later"
ends
passed "a scheduler that drains leaves checkpoints, and the next one goes on"

# A scheduler that drains waits for runs that do not leave; a second stop ends it at once. A job of at least
# two devices asks for two.
serve --policy fifo --round 2
submit long.yaml pair '"min":2,"scale":1'
says 'scale is from min to max'
submit long.yaml pair '"min":2'
id=$(number id)
ask "/v1/jobs/$id"
same "$(number scale)" 2 "devices of a job that takes two at least"
post "/v1/jobs/$id/cancel" '{}'
submit long.yaml stands
id=$(number id)
reach "$id" running
read -r _ _ holder _ <"$dir/runs/$id-tiny/seat"
kill -STOP "$holder"
post /v1/stop '{"drain":true}'
sleep 1
kill -0 "$pid" 2>/dev/null || failed "the scheduler did not wait for job $id to leave"
submit long.yaml later                            # a sweep asks again for as long as that is the answer
same "$(number code)" -105 "code of a scheduler that is about to end"
post /v1/stop '{}'
await not kill -0 "$pid" 2>/dev/null || failed "a scheduler that drains goes on after a second stop"
kill -CONT "$holder"
serve --policy fifo --round 2
truncate -s 65M "$dir/decisions.ndjson"           # as if it had been long there
post "/v1/jobs/$id/cancel" '{}'
reach "$id" cancelled
[ "$(stat -c %s "$dir/decisions.1.ndjson")" -ge 68157440 ] ||
	failed "the log of decisions grows without end: $(ls -l "$dir")"
[ "$(stat -c %s "$dir/decisions.ndjson")" -lt 100000 ] || failed "the log of decisions does not begin again"
grep -q '"CANCEL"' "$dir/decisions.ndjson" ||
	failed "what was decided after the log was full is not in the next one"
ends
passed "a drain that takes too long is ended by another stop"

# ---- shares of time, and a scheduler that dies ----

policy=las
heddle sched policies 2>/dev/null | grep -q '^las' || policy=isolated
seen=
serve --policy "$policy" --round 1
for i in 1 2 3 4 5; do
	sed "s/seed: 3/seed: $i/; s/steps: 700/steps: 1500/" job.yaml >job$i.yaml
	expect 0 heddle run job$i.yaml --out alone$i -q --devices 1
	submit job$i.yaml "storm$i"
	seen="$seen $(number id)"
done
for k in $(seq "$kills"); do
	sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
	kill -9 "$pid" 2>/dev/null
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	serve --policy "$policy" --round 1
	# all are over: five others
	if [ "$(ask '/v1/jobs?state=done&after=5&limit=1000' && grep -o '"id"' out | wc -l)" \
		-ge "$(wc -w <<<"$seen")" ]; then
		for i in 1 2 3 4 5; do
			submit job$i.yaml "again$k-$i"
			seen="$seen $(number id)"
		done
	fi
done
n=0
for id in $seen; do
	reach "$id" done 6000
	i=$((n % 5 + 1))
	same "$(number digest)" "$(heddle ckpt digest alone$i)" "digest of job $id and of its undisturbed run"
	run=$(number run)
	same "$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | sort -u | wc -l)" 1500 \
		"steps of job $id with a record"
	[ "$(starts "$id")" -le "$(number leases)" ] ||
		failed "job $id was started $(starts "$id") times for $(number leases) leases"
	n=$((n + 1))
done
same "$(ask '/v1/jobs?limit=1000' && grep -o '"id"' out | wc -l)" $((5 + n)) "jobs that the scheduler knows"
ask /v1/status
same "$(number done)" $((2 + n)) "jobs that are done"
ask '/v1/events/past?limit=1000'
passed "$kills deaths of the scheduler: $n jobs ended once with their bits, $(grep -o '"kind":"leave"' out \
	| wc -l) times preempted, $(grep -o '"kind":"resize"' out | wc -l) times moved while they ran"

# ---- all of a job dies ----

submit long.yaml dies
id=$(number id)
reach "$id" running
for _ in $(seq 3000); do [ -s "$dir/runs/$id-tiny/metrics.ndjson" ] && break; sleep 0.1; done
read -r _ _ dead _ <"$dir/runs/$id-tiny/seat"
for seat in "$dir"/devices/* "$dir"/runs/"$id"-tiny/seat; do
	read -r job _ holder _ <"$seat" && [ "$job" = "$id" ] && kill -9 "$holder"
done
lines=$(wc -l <"$dir/runs/$id-tiny/metrics.ndjson")
# under another lease, or under this one where a worker that was started meanwhile takes over
goes_on()
{
	ask "/v1/jobs/$id" && [ "$(number leases)" -ge 2 ] && return
	read -r _ _ holder _ <"$dir/runs/$id-tiny/seat" && [ "$holder" != "$dead" ] &&
		[ "$(wc -l <"$dir/runs/$id-tiny/metrics.ndjson")" -gt "$lines" ]
}
await goes_on || failed "a job whose processes all died is not started again"
post "/v1/jobs/$id/cancel" '{}'
reach "$id" cancelled
ends
passed "a job whose processes all died is started again"

# ---- a scheduler that stays dead, and what a user said of a device ----

serve --policy fifo --round 1
submit long.yaml alone
id=$(number id)
reach "$id" running
post /v1/devices/slow-0 '{"usable":false}'
kill -9 "$pid"
await grep -qs '"exit":75' "$dir/runs/$id-tiny/end.json"          # it stays alone for 30 s, and commits
grep -q '"exit":75' "$dir/runs/$id-tiny/end.json" || failed "job $id goes on without a scheduler for ever"
grep -q 'its lease is over' "$dir"/runs/"$id"-tiny/*.ndjson "$dir"/runs/"$id"-tiny/log/*.log ||
	failed "nothing says why job $id left"
serve --policy fifo --round 1
for _ in $(seq 3000); do ask "/v1/jobs/$id"; [ "$(number leases)" -ge 2 ] && break; sleep 0.1; done
[ "$(number leases)" -ge 2 ] || failed "job $id, whose lease ended, is not started again"
ask /v1/pools
says '"name":"slow-0","type":"slow","state":"out"'
post /v1/devices/slow-0 '{"usable":true}'
post "/v1/jobs/$id/cancel" '{}'
reach "$id" cancelled
ends
passed "a lease ends without its scheduler: the job commits and leaves, and goes on later"

# ---- a policy that refuses what is there ----

both=$dir dir=$work/E
one()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool a:2 --round 60 "$@" >>serve.out 2>>serve.err & pid=$!
	disown
	up
}
one --policy fifo
post /v1/policy '{"policy":"isolated"}'
# as before, another one, and the first again
for how in "--policy fifo:isolated" "--policy sjf:sjf" "--policy fifo:fifo"; do
	kill -9 "$pid"
	one ${how%:*}
	ask /v1/policy
	same "$(number policy)" "${how#*:}" \
		"the policy of a scheduler that was left with isolated and started with ${how%:*}"
done
submit long.yaml pair '"scale":2,"set":["job.priority=2.5","job.deadline=2h"]'
id=$(number id)
ask "/v1/jobs/$id"
same "$(number priority)" 2.5 "priority of a job that says so itself"
awk -v a="$(number submitted_s)" -v d="$(number deadline_s)" \
	'BEGIN { exit !(d - a > 7190 && d - a < 7210) }' || failed "a deadline of 2 h: $(cat out)"
kill -9 "$pid"
expect 2 heddle serve --dir "$dir" --pool a:2 --policy allox
says "job $id (tiny), of 2 devices: policy allox refuses it"
"$HEDDLE_BIN" serve --dir "$dir" --pool a:2 --policy fifo --round 60 >>serve.out 2>>serve.err & pid=$!
disown
up
post "/v1/jobs/$id/cancel" '{}'
reach "$id" cancelled
ends
dir=$both
passed "a scheduler does not begin with a policy that refuses a job of its folder"

# ---- a store that is lost ----

last=$(ls "$dir/runs" | cut -d- -f1 | sort -n | tail -n 1)
digest=$(heddle ckpt digest "$dir/runs/1-tiny")
mkdir lost && mv "$dir"/jobs.sqlite* lost/
serve --policy fifo --round 2
submit job.yaml first
[ "$(number id)" -gt "$last" ] || failed "job $(number id) after $last: its folder may be another job's"
post "/v1/jobs/$(number id)/cancel" '{}'
same "$(heddle ckpt digest "$dir/runs/1-tiny")" "$digest" "digest of a run that the store does not know"
ends
passed "without its store a scheduler leaves the runs that there are"
