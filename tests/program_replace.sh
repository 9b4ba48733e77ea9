#!/bin/bash
# Another scheduler in the place of one that serves, while a job trains: the job's bits are those of its
# undisturbed run, and it never stops. What is refused, or dies before, leaves the one that serves.
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
ask() { curl -sS --max-time 60 --unix-socket "$dir/heddle.sock" "http://localhost$1" "${@:2}" >out 2>err; }
post() { ask "$1" -H 'Content-Type: application/json' --data-binary "$2"; }
how="--pool a:2 --policy fifo --round 1"
serve() { "$HEDDLE_BIN" serve --dir "$dir" $how -q "$@" >>serve.out 2>>serve.err & pid=$!; disown; }
is_up() { ask /v1/status && [ -s out ]; }
lives() { kill -0 "$1" 2>/dev/null; }
dead() { ! lives "$1"; }
is_in() { ask "/v1/jobs/$1" && [ "$(number state)" = "$2" ]; }
sums() { (cd "$1" && find . -type f | sort | xargs sha256sum); }

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 3000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [100], classes: 4}}
data: {kind: synthetic, count: 256}
batch: {global: 32, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
END
expect 0 heddle run job.yaml --out alone -q --devices 1
want=$(heddle ckpt digest alone)
text=$(sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' job.yaml | tr -d '\n')
submit() { post /v1/jobs "{\"job\":\"$text\",\"folder\":\"$work\",\"scale\":2$1}" && number id; }

# ---- --check ----

expect 3 heddle serve --check --dir nowhere $how
serve
first=$pid
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
held=$(submit ',"held":true')
kill -9 $first
await dead $first
before=$(sums "$dir")
[ -e "$dir/jobs.sqlite-wal" ] || failed "a killed scheduler left no WAL: nothing is shown"
expect 0 heddle serve --check --dir "$dir" $how
says 'ok      store'
says 'ok      runs     1 open jobs, 1 of them read'
expect 2 heddle serve --check --dir "$dir" --pool a:2 --policy nonsense
says 'refuse  store'
mv "$dir/runs/$held-tiny/job.resolved.json" kept.json
expect 2 heddle serve --check --dir "$dir" $how
says "refuse  run      job $held"
mv kept.json "$dir/runs/$held-tiny/job.resolved.json"
same "$(sums "$dir")" "$before" "files of the folder before and after --check"
[ -z "$(ls -d /tmp/heddle-check-* 2>/dev/null)" ] || echo "note: other checks run on this machine"
passed "a check changes no file"

# ---- --replace ----

serve
first=$pid
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
id=$(submit '')
run=$dir/runs/$id-tiny
await test -s "$run/metrics.ndjson" || failed "job $id does not begin"
expect 0 heddle serve --check --dir "$dir" $how
expect 2 heddle serve --replace --dir "$dir" --pool a:1 --policy fifo -q
says 'a-1, which no pool has'
lives $first || failed "the scheduler ended though the next one was refused"
if has_failpoints; then
	HD_FAIL=replace.tried:kill expect 137 heddle serve --replace --dir "$dir" $how -q
	lives $first && is_up || failed "the scheduler ended though the next one died before"
	HD_FAIL=replace.ended:kill expect 137 heddle serve --replace --dir "$dir" $how -q
	await dead $first || failed "it was asked to end, and has not"
	serve
	first=$pid
	await is_up || failed "no scheduler after one that died between: $(tail -n 3 serve.err)"
fi
serve --replace
await dead $first || failed "the first scheduler does not end: $(tail -n 3 serve.err)"
await is_up || failed "the second scheduler does not answer: $(tail -n 3 serve.err)"
is_in "$id" running || echo "note: the job had ended before"
lives $pid || failed "the second scheduler is gone: $(tail -n 3 serve.err)"
await is_in "$id" done || failed "job $id does not end: $(cat out)"
same "$(number digest) $(number leases)" "$want 1" "digest and leases of the job"
same "$(grep -c job_start "$run/events.ndjson")" 1 "times that the run began"
ask "/v1/jobs/$held"
same "$(number state)" queued "state of the held job after"
kill $pid
await dead $pid
serve --replace                           # in the place of none
await is_up || failed "no scheduler where none served: $(tail -n 3 serve.err)"
kill $pid
await dead $pid
pid=
passed "a scheduler takes another one's place while a job trains"
