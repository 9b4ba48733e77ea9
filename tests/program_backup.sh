#!/bin/bash
# The store of a scheduler as a folder: copied while jobs are submitted, put back after it is lost, with what
# ran since; refused where it would harm.
#
# HD_BACKUP_JOBS (20): submissions while backups are made.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
dir=$work/D pid= jobs=${HD_BACKUP_JOBS:-20}
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
serve()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool a:1 --policy fifo --round 1 -q >>serve.out 2>>serve.err &
	pid=$!
	disown
	await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
}
dead() { ! kill -0 "$pid" 2>/dev/null; }
is_up() { ask /v1/status && [ -s out ]; }
stop() { kill "$pid"; await dead || failed "the scheduler does not end"; pid=; }
is_in() { ask "/v1/jobs/$1" && [ "$(number state)" = "$2" ]; }
held() { ! flock -n "$1" true 2>/dev/null; }
idle() { ! held "$1"; }
sums() { (cd "$1" && find . -type f | sort | xargs sha256sum); }

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 60}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [50], classes: 4}}
data: {kind: synthetic, count: 256}
batch: {global: 32, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
END
expect 0 heddle run job.yaml --out alone -q --devices 1
want=$(heddle ckpt digest alone)
text=$(sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' job.yaml | tr -d '\n')
submit() { post /v1/jobs "{\"job\":\"$text\",\"folder\":\"$work\"$1}" && number id; }

# ---- while jobs are submitted ----

serve
submit ',"held":true' >/dev/null
(for i in $(seq $jobs); do
	curl -sS --unix-socket "$dir/heddle.sock" http://localhost/v1/jobs \
		-H 'Content-Type: application/json' \
		--data-binary "{\"job\":\"$text\",\"folder\":\"$work\",\"held\":true}" >"sent.$i" || break
done) & sender=$!
n=0
while kill -0 $sender 2>/dev/null; do
	n=$((n + 1))
	expect 0 heddle serve --backup "b$n" --dir "$dir" --json
	same "$(number jobs)" "$(number last)" "jobs of backup $n and the greatest number"
	grep -q "\"sha256\":\"$(sha256sum "b$n/jobs.sqlite" | cut -d ' ' -f 1)\"" out ||
		failed "backup $n: its sum is not that of its file: $(cat out)"
	[ ! -e "b$n/jobs.sqlite-wal" ] && [ ! -e "b$n.part" ] || failed "backup $n left more: $(ls "b$n"*)"
done
[ $n -ge 2 ] || failed "only $n backups were made while $jobs jobs were submitted"
same "$(grep -l '"id"' sent.* | wc -l)" "$jobs" "jobs that were taken meanwhile"
passed "backups while jobs are submitted: each of one instant"

expect 2 heddle serve --backup b1 --dir "$dir"
says 'b1 is there'
expect 1 heddle serve --restore b1 --dir "$dir"
says 'a scheduler serves'

# ---- lost, and put back ----

expect 0 heddle serve --backup kept --dir "$dir"
post "/v1/jobs/2/release" '{}'            # has its first lease after the backup
await is_in 2 done || failed "job 2 does not end: $(cat out)"
later=$(submit ',"held":true')            # and this one the backup knows nothing of
stop
await idle "$dir/devices/a-0"             # its worker may be on its way out
expect 2 heddle serve --restore kept --dir "$dir"
says 'has jobs: move it away'
expect 0 heddle serve --backup offline --dir "$dir" --json
same "$(number last)" "$later" "the greatest number in a backup without a scheduler"
before=$(sums "$dir/runs")
echo 1000 >"$dir/webhook"                 # a webhook has delivered more than the backup has events
rm "$dir"/jobs.sqlite*
cp -r kept harmed
printf x | dd of=harmed/jobs.sqlite bs=1 seek=5000 conv=notrunc status=none
expect 5 heddle serve --restore harmed --dir "$dir"
says 'is not what'
[ ! -e "$dir/jobs.sqlite" ] || failed "a harmed backup left a store"
if has_failpoints; then
	HD_FAIL=restore.place:kill expect 137 heddle serve --restore kept --dir "$dir"
fi
(exec 9<>"$dir/devices/a-0"; flock 9; exec sleep 600) & holder=$!
await held "$dir/devices/a-0"
expect 1 heddle serve --restore kept --dir "$dir"
says 'still works'
kill $holder 2>/dev/null
wait $holder 2>/dev/null
expect 0 heddle serve --restore kept --dir "$dir" --json
same "$(number ran) $(number done) $(number unknown) $(number gone)" "1 1 1 0" \
	"jobs that ran since, are done, are unknown, are gone"
same "$(sums "$dir/runs")" "$before" "files of the runs before and after"
serve
ask /v1/jobs/2
same "$(number state) $(number digest) $(number leases)" "done $want 1" \
	"job 2, which ran after the backup was made"
ask '/v1/events/past?after=1000'
same "$(number number) $(number kind)" "1001 restored" "the first event after a webhook's last"
next=$(submit '')
same "$next" $((later + 1)) "number of the first job after"
await is_in "$next" done || failed "job $next does not end: $(cat out)"
same "$(number digest)" "$want" "its digest and that of the undisturbed run"
stop
passed "a lost store is put back, with what ran since"
