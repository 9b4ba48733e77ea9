#!/bin/bash
# A scheduler that dies again and again: at random instants, and at its named failpoints in turn (all of them
# from 22 kills on). Every job that was submitted ends once, with the bits of its undisturbed run.
#
# HD_SERVE_KILLS (12): deaths; HD_SERVE_SEED: of instants and of how often a failpoint is passed first.
# tools/daemon_chaos.sh asks for many. The test waits for events; how fast anything goes decides nothing.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
needs_failpoints
kills=${HD_SERVE_KILLS:-12} RANDOM=${HD_SERVE_SEED:-1} dir=$work/D pid= submitted=0
points=($(sed -n 's/^\tX([A-Z_]*, *"\([a-z.]*\)", *[a-z]*, *SCHEDULER,.*/\1/p' \
	"$SOURCE_DIR/src/sys/failpoint.h"))
[ ${#points[@]} -ge 10 ] || failed "the names of failpoint.h were not found"
declare -A count

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

ask() { curl -sS --max-time 60 --unix-socket "$dir/heddle.sock" "http://localhost$1" "${@:2}" >out 2>err; }
post() { ask "$1" -H 'Content-Type: application/json' --data-binary "$2"; }
text() { sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' "$1" | tr -d '\n'; }
serve()
{
	HD_FAIL=$1 "$HEDDLE_BIN" serve --dir "$dir" --pool a:1,b:1 --policy fifo --round 1 "${@:2}" -q \
		>>serve.out 2>>serve.err & pid=$!
	disown
}
lives() { kill -0 "$pid" 2>/dev/null; }
dead() { ! lives; }
up_or_dead() { dead || { ask /v1/status && [ -s out ]; }; }
is_up() { ask /v1/status && [ -s out ]; }

# Job $1, under a key: asked for again, it is the same job. Every other one runs after the one before it, and
# has a limit.
submit()
{
	local terms=
	[ $(($1 % 2)) = 0 ] || terms=",\"after\":[\"j-$(($1 - 1)):ok\"],\"limit_s\":36000"
	post /v1/jobs "{\"job\":\"$(text "job$(($1 % 3)).yaml")\",\"folder\":\"$work\",\"key\":\"job-$1\",
		\"name\":\"j-$1\"$terms}" && [ "$(number id)" ]
}
waiting() { ask '/v1/status' && grep -o '"queued":[0-9]*' out | head -n 1 | cut -d: -f2; }

for i in 0 1 2; do
	cat >job$i.yaml <<END
job: {name: tiny, seed: $((3 + i)), steps: $((300 + 100 * i))}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [100, 100], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
END
	expect 0 heddle run job$i.yaml --out alone$i -q --devices 1
	want[i]=$(heddle ckpt digest alone$i)
done

# One life of the scheduler: at least one job waits, so that there is something to decide; then it dies.
for k in $(seq "$kills"); do
	where=instant fail=
	if [ $((k % 2)) -eq 0 ]; then
		where=${points[k / 2 % ${#points[@]}]}
		fail="$where:kill@$((1 + RANDOM % 3))"
		[ "$where" != daemon.open ] || fail=$where:kill
	fi
	serve "$fail"
	await up_or_dead || failed "life $k: the scheduler neither answers nor dies: $(tail -n 3 serve.err)"
	# a scheduler killed while it takes one is asked again in its next life
	for _ in 1 2 3; do
		n=$(waiting); lives && [ "${n:-9}" -lt 2 ] || break
		submit "$submitted" && submitted=$((submitted + 1))
	done
	if [ "$fail" ]; then
		for _ in $(seq 40); do dead && break; ask /v1/jobs; sleep 0.1; done
		lives && where=instant    # it did not come by there in time
	else
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
	fi
	lives && kill -9 "$pid"
	await dead || failed "life $k: process $pid does not end"
	count[$where]=$((${count[$where]:-0} + 1))
done
serve ''
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
submit "$submitted" || failed "the last job is not taken: $(cat out)"         # it may be there already
submitted=$((submitted + 1))
known()
{
	ask /v1/status && grep -o '"counts":{[^}]*}' out | grep -o ':[0-9]*' | tr -d : |
		awk '{ n += $1 } END { print n }'
}
same "$(known)" "$submitted" "jobs that the scheduler knows after its last start"
all_over() { ask /v1/status && [ "$(number done)" = "$submitted" ]; }
some_failed() { [ "$(number failed)" != 0 ]; }
await_over()
{
	local end=$((SECONDS + 1200))
	until all_over; do
		[ $SECONDS -lt $end ] && ! some_failed || return 1
		sleep 0.3
	done
}
await_over ||
	failed "of $submitted jobs $(number done) are done: $(cat out; ask '/v1/jobs?limit=1000'; grep \
	-o '"id":[0-9]*,[^}]*"state":"[a-z]*"' out | grep -v '"done"'; tail -n 20 serve.err)"

n=0
for i in $(seq 0 $((submitted - 1))); do
	submit "$i"                       # says which
	id=$(number id)
	ask "/v1/jobs/$id"
	run=$(number run)
	same "$(number digest)" "${want[i % 3]}" "digest of job $id and of its undisturbed run"
	[ $((i % 2)) = 0 ] || { same "$(number after)" "$other:ok:met" "what job $id ran after"
		awk -v a="$(number started_s)" -v b="$before" 'BEGIN { exit !(a >= b) }' ||
			failed "job $id began at $(number started_s) s, and job $other ended at $before s"; }
	other=$id before=$(number ended_s)
	same "$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | sort | uniq -d | wc -l)" 0 \
		"steps of job $id that were recorded twice"
	same "$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | wc -l)" $((300 + 100 * (i % 3))) \
		"steps of job $id with a record"
	[ "$(grep -c job_start "$run/events.ndjson")" -le "$(ask "/v1/jobs/$id" && number leases)" ] ||
		failed "job $id was started more often than it had leases"
	same "$(ask "/v1/events/past?limit=1000&job=$id" && grep -o '"kind":"done"' out | wc -l)" 1 \
		"ends of job $id"
	n=$((n + 1))
done
same "$(known)" "$n" "jobs that the scheduler knows at the end"
# A scheduler killed before it stored a job leaves a folder; nothing ever ran there.
same "$(grep -l job_start "$dir"/runs/*/events.ndjson | wc -l)" "$n" "runs that began"
kill "$pid"
await dead || failed "the scheduler does not end"
for where in instant "${points[@]}"; do echo "  ${count[$where]:-0}  $where"; done
passed "$kills deaths of the scheduler: $n jobs ended once, with the bits of their undisturbed runs"

# ---- a policy that does not come to an end ----

# The second question takes an hour: meanwhile what runs runs to its end, and whoever asks is answered.
dir=$work/S
serve daemon.solve:delay=3600000@2
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
asks() { post /v1/jobs "{\"job\":\"$(text "$1")\",\"folder\":\"$work\",\"rates\":{\"b\":0}}" && number id; }
first=$(asks job2.yaml)
is_in() { ask "/v1/jobs/$1" && [ "$(number state)" = "$2" ]; }
begun() { is_in "$first" running || is_in "$first" done; }
await begun || failed "job $first does not begin: $(cat out)"
next=$(asks job1.yaml)
asked() { ask /v1/status && [ "$(number asked_s)" != -1 ]; }
await asked || failed "the policy is not asked about job $next: $(cat out)"
await is_in "$first" done || failed "job $first does not end while a policy is asked: $(cat out)"
same "$(number digest)" "${want[2]}" "digest of a job that ran while a policy was asked"
post "/v1/jobs/$next/cancel" '{}'
await is_in "$next" cancelled || failed "job $next is not cancelled while a policy is asked: $(cat out)"
passed "a policy that takes an hour holds up no request"

# Another one, posted meanwhile, decides; the thread of the first is not waited for, neither then nor at the
# end.
post /v1/policy '{"policy":"sjf"}'
same "$(number policy)" sjf "policy after it was changed while the first was asked"
after=$(asks job1.yaml)
await is_in "$after" done || failed "job $after does not end under the policy that was posted: $(cat out)"
same "$(number digest)" "${want[1]}" "digest of a job that ran under the policy that was posted"
sed '1,/"open":"sjf"/d' "$dir/decisions.ndjson" | grep -q GIVE_UP &&
	failed "the new policy waited for the old one"
machines=$(grep -c '"open":' "$dir/decisions.ndjson")
post /v1/policy '{"policy":"sjf"}'
same "$(number policy)" sjf "policy after the same was posted again"
same "$(grep -c '"open":' "$dir/decisions.ndjson")" "$machines" \
	"machines after the policy that decides was posted"
post /v1/policy '{"policy":"fifo"}'       # its thread is still in the question of before
ask /v1/status
number late | grep -q '^policy fifo is still in a question of before' ||
	failed "status says of a policy that is not asked: $(cat out)"
post /v1/policy '{"policy":"sjf"}'
kill "$pid"
await dead || failed "the scheduler waits for a policy that does not come to an end"
passed "a policy that is posted meanwhile takes over"

# No client posts another one: after the time of a lease it is given up, and the events say so.
dir=$work/G
serve daemon.solve:delay=3600000@2 --lease 4
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
first=$(asks job2.yaml)
await begun || failed "job $first does not begin: $(cat out)"
next=$(asks job1.yaml)
late()
{
	ask /v1/status && number late | grep -q "^policy fifo has not answered within 4 s and was given up"
}
await late || failed "status does not say that the policy was given up: $(cat out)"
heddle status --dir "$dir" | grep -q '^policy fifo has not answered within 4 s' ||
	failed "heddle status does not say it"
ask '/v1/events/past?limit=1000'
grep -q '"kind":"policy","job":0,"text":"policy fifo has not answered within 4 s' out ||
	failed "no event says it: $(cat out)"
grep -q '"in":"GIVE_UP"' "$dir/decisions.ndjson" || failed "decisions.ndjson does not say it"
is_in "$next" queued || failed "job $next does not wait: $(cat out)"
post /v1/policy '{"policy":"sjf"}'
await is_in "$next" done || failed "job $next does not end under the policy that was posted: $(cat out)"
ask /v1/status
[ -z "$(number late)" ] || failed "status says of a policy that answers: $(number late)"
kill "$pid"
await dead || failed "the scheduler does not end"
passed "a policy that does not answer is given up"
