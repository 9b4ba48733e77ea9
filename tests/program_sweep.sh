#!/bin/bash
# A sweep through a scheduler that it starts: both are killed at any instant, and the table is the one that
# follows from each trial's run alone, with its bits.
#
# HD_SWEEP_TRIALS (9; 27: three keys); HD_SWEEP_KILLS (2): of the sweep, of the scheduler, in turns;
# HD_SWEEP_SEED: of the instants.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 for the oracle"; exit 77; }
trials=${HD_SWEEP_TRIALS:-9} kills=${HD_SWEEP_KILLS:-2} RANDOM=${HD_SWEEP_SEED:-1}

# Schedulers and jobs outlive what started them: seats name what is there.
clear_out()
{
	for seat in D/devices/* D/runs/*/seat; do
		[ -s "$seat" ] && read -r _ _ holder _ <"$seat" &&
			[ "$(readlink "/proc/$holder/exe")" = "$(readlink -f "$HEDDLE_BIN")" ] &&
				kill -9 "$holder"
	done 2>/dev/null
	[ -z "$(scheduler)" ] || kill -9 "$(scheduler)" 2>/dev/null
	true
}
scheduler() { sed -n 's/.*"pid":\([0-9]*\).*/\1/p' D/sweeps/.scheduler 2>/dev/null; }
trap 'clear_out; end_jobs 2>/dev/null; rm -rf "$work"' EXIT

# The example, as docs/scheduling.md has it; 27 trials have a third key, and begin later, so that they take
# 37.8 % of all steps (bench/sweep.py has other jobs).
cp "$SOURCE_DIR/examples/sweep-job.yaml" job.yaml
sed '/^#/d; s/^job: sweep-job.yaml/job: job.yaml/' "$SOURCE_DIR/examples/sweep.yaml" >lr.yaml
rungs='[10, 30, 90]'
if [ "$trials" = 27 ]; then
	sed -i 's/^space: .*]/&, batch.global: [32, 64, 128]/; s/min: 10/min: 18/' lr.yaml
	rungs='[18, 54, 90]'
fi

# Each key that a sweep file may have is explained.
for key in $(grep -o '{ "[a-z]*", read_' "$SOURCE_DIR/src/sweep/sweep.c" | cut -d '"' -f 2); do
	grep -q "^| \`\([a-z]*\.\)\{0,1\}$key[.\`]" "$SOURCE_DIR/docs/scheduling.md" ||
		failed "docs/scheduling.md does not explain the key $key"
done

# ---- refusals: nothing is made ----

expect 2 heddle sweep lr.yaml
says '--dir DIR'
sed 's/halving/halfing/' lr.yaml >bad.yaml
expect 3 heddle sweep bad.yaml --dir D
says 'bad.yaml:2:9: method is one of grid'
sed 's/optim.weight_decay: \[0,/optim.weight_decay: [minus,/' lr.yaml >bad.yaml
expect 2 heddle sweep bad.yaml --dir D
says 'trial 0: -s optim.weight_decay'
expect 2 heddle sweep lr.yaml --dir D -s optim.lr=1
says 'which of the two'
sed 's/eta: 3/eta: 3, max: 91/' lr.yaml >bad.yaml
expect 3 heddle sweep bad.yaml --dir D
says 'and the job has 90 steps'
[ ! -e D ] || failed "a refused sweep left $(ls D)"
passed "a sweep that makes no sense is refused before anything is ordered"

# ---- a sweep that is killed, with its scheduler ----

# Its name is that of nothing in D/sweeps.
line=(sweep lr.yaml --name scheduler --dir D --pool cpu:4 --round 0.5 --json)
sweep() { "$HEDDLE_BIN" "${line[@]}" "$@"; }
record=D/sweeps/scheduler/record.ndjson
lines() { wc -l 2>/dev/null <$record || echo 0; }
grew() { [ "$(lines)" -gt "$1" ] || ! kill -0 "$of" 2>/dev/null; }
for ((k = 0; k < kills; k++)); do
	"$HEDDLE_BIN" "${line[@]}" >out 2>>sweep.err & of=$!
	disown
	before=$(lines) more=$((1 + RANDOM % 3))
	await grew $((before + more - 1))
	if [ $((k % 2)) = 0 ]; then
		kill -9 $of 2>/dev/null
	else
		kill -9 "$(scheduler)"
		await grew $((before + more))
		kill -9 $of 2>/dev/null
	fi
done
expect 0 sweep
cp out table.json
cmp -s out D/sweeps/scheduler/table.json || failed "the table that is printed is not the one in the folder"
grep -q 'parallel coordinates\|<svg' D/sweeps/scheduler/sweep.html || failed "the page has no drawing"
# one that has ended may stay in the table of processes until its new parent looks
! grep -q ') [^ZX]' "/proc/$(scheduler)/stat" 2>/dev/null || failed "its scheduler goes on"
! grep -l 'did not tell its status' D/runs/*/events.ndjson ||
failed "a trial waited for members that had ended"

# What follows from each trial alone: all to the last step, in one process, and the rule by another program.
cat >oracle.py <<'END'
import json, math, os, subprocess, sys
heddle, table = sys.argv[1], json.load(open("table.json"))
rungs, eta, n = json.loads(sys.argv[2]), 3, len(table["trials"])
def alone(i, steps):
    out = "alone-%d-%d" % (i, steps)
    sets = [a for s in table["trials"][i]["set"] for a in ("-s", s)]
    subprocess.run([heddle, "run", "job.yaml", "--out", out, "-q", "--devices", "1", "--steps", str(steps)]
                   + sets, check=True, stderr=subprocess.DEVNULL)
    digest = subprocess.run([heddle, "ckpt", "digest", out], check=True, capture_output=True, text=True)
    return [json.loads(l)["loss"] for l in open(out + "/metrics.ndjson")], digest.stdout.strip()
full = os.environ.get("HD_SWEEP_TRIALS", "9") != "9"
reached, losses, here = [0] * n, {}, list(range(n))
for k, steps in enumerate(rungs):
    at = {}
    for i in here:
        losses[i], digest = alone(i, steps)
        at[i] = math.fsum(losses[i][steps - 5:]) / 5
        reached[i] = k + 1
        row = table["trials"][i]
        assert abs(row["rungs"][k]["metric"] - at[i]) <= 1e-12 * at[i], (i, k, row, at[i])
        if row["steps"] == steps:
            assert row["digest"] == digest, (i, k, row, digest)
    here = sorted(here, key=lambda i: (at[i], i))[:max(1, n // eta ** (k + 1))]
for i, row in enumerate(table["trials"]):
    assert len(row["rungs"]) == reached[i] and row["steps"] == rungs[reached[i] - 1], (i, row, reached[i])
    assert row["state"] == ("done" if reached[i] == 3 else "stopped"), row
assert table["over"] and table["best"] == here[0], (table["best"], here)
assert table["steps"] == sum(rungs[r - 1] for r in reached), table["steps"]
assert table["steps"] <= 0.4 * table["exhaustive"], (table["steps"], table["exhaustive"])
if full:        # the best of all, each brought to the end
    at = [math.fsum(alone(i, 90)[0][85:]) / 5 if reached[i] < 3 else table["trials"][i]["metric"]
          for i in range(n)]
    assert min(range(n), key=lambda i: (at[i], i)) == table["best"], (at, table["best"])
print("steps %d of %d, best %d" % (table["steps"], table["exhaustive"], table["best"]))
END
python3 oracle.py "$HEDDLE_BIN" "$rungs" >oracle.out 2>&1 || failed "the oracle: $(cat oracle.out)"
passed "$trials trials, $kills kills: the table and the bits of each trial alone, $(cat oracle.out)"

# ---- again: nothing is done twice; another sweep of that name is refused ----

jobs=$(ls D/runs | wc -l) before=$(lines)
expect 0 sweep -q
cmp -s out table.json || failed "a sweep that is over has another table"
same "$(lines) $(ls D/runs | wc -l)" "$before $jobs" "lines and runs after a sweep that was over"
sed -i 's/n: 3/n: 2/' lr.yaml
expect 2 sweep
says 'is of another sweep'
passed "a sweep that is over does nothing, and no other one takes its place"

# ---- killed at both sides of the start of its scheduler: the next one takes it, and ends it ----

printf '%s\n' 'job: job.yaml' 'method: grid' 'space: {optim.lr: [0.01]}' 'steps: {max: 3}' >one.yaml
if has_failpoints; then
	answers() { curl -s --unix-socket "$1" http://localhost/v1/status >out && [ -s out ]; }
	for at in spawn mark mark-dies; do
		line=(sweep one.yaml --dir E-$at --pool cpu:1 --round 0.5 --json -q)
		HD_FAIL=sweep.${at%-*}:kill expect 137 heddle "${line[@]}"
		[ $at = spawn ] || await answers E-$at/heddle.sock
		left=$([ $at = spawn ] || number pid)
		[ $at != mark-dies ] || kill -9 "$left"
		expect 0 heddle "${line[@]}"
		gone() { ! grep -q ') [^ZX]' "/proc/$left/stat" 2>/dev/null; }
		gone || await gone || failed "killed at $at: its scheduler goes on"
	done
	[ "$left" ] || failed "no scheduler was left behind by a sweep that was killed"
	passed "a sweep that is killed as it starts a scheduler leaves none behind"
fi

# ---- a user's scheduler that has the number of one that a sweep had started ----

"$HEDDLE_BIN" serve --dir D --pool cpu:1,far:1 --policy fifo --round 0.5 -q 2>serve.err &
served=$!
await test -S D/heddle.sock
echo "{\"pid\":$served,\"began\":1}" >D/sweeps/.scheduler
expect 0 heddle sweep one.yaml --dir D -q
if command -v curl >/dev/null; then
	of() { curl -s --unix-socket D/heddle.sock "http://localhost/v1/sweeps$1" >out; }
	of /scheduler
	same "$(cat out)" "$(cat D/sweeps/scheduler/table.json)" "a sweep over HTTP and its table"
	of ''
	same "$(grep -o '"name":"[a-z]*"' out | tr '\n' ' ')" '"name":"one" "name":"scheduler" ' \
		"sweeps over HTTP"
	for name in nothing .scheduler ..%2f..; do
		of "/$name"
		grep -qE 'there is no sweep|"error"' out || failed "sweep $name over HTTP: $(cat out)"
	done
fi
kill -0 $served 2>/dev/null || failed "a sweep ended a scheduler that it had not started"
post()
{
	curl -s --unix-socket D/heddle.sock -H 'Content-Type: application/json' "http://localhost/v1/jobs$1" \
		${2:+-d "$2"} >out
}
post '' "{\"job\":\"$(sed 's/"/\\"/g; s/$/\\n/' job.yaml | tr -d '\n')\",\"folder\":\"/\",\"name\":\"near\",
	\"until\":2,\"rates\":{\"far\":0}}"
done_() { post /near && grep -q '"state":"done"' out; }
await done_
post /near/continue '{"until":3}'
post /near
says '{"type":"far","steps_s":0,"from":"asked"}'
done_ || await done_ || failed "the job that goes on does not end: $(cat out)"
# one that was to go on, and is cancelled before it does: the run goes on from where it is
device() { curl -s --unix-socket D/heddle.sock -H 'Content-Type: application/json' \
	"http://localhost/v1/devices/cpu-0" -d "{\"usable\":$1}" >out; }
device false
post /near/continue '{"until":9}'
gone=$(number id)
post "/$gone/continue" '{"until":10}'
says "job $gone is open: only a run whose job is done"
post "/$gone/cancel" '{}'
post "/$gone/continue" '{"until":3}'
says 'has 3 steps already'
post "/$((gone - 1))/continue" '{"until":5}'
on=$(number id)
[ "${on:-0}" -gt "$gone" ] || failed "no job goes on after one that was cancelled: $(cat out)"
post "/$((gone - 1))/continue" '{"until":6}'
says "job $on goes on with the run of job $((gone - 1)): name that one"
device true
await done_ || failed "the job that goes on after a cancelled one does not end: $(cat out)"
run=$(number run) digest=$(number digest)
expect 0 heddle run job.yaml --out five -q --devices 1 --steps 5
same "$digest" "$(heddle ckpt digest five)" "digest of a run that went on after a cancelled job, and alone"
same "$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | sort | uniq -d | wc -l)" 0 "steps computed twice"
passed "a user's scheduler is not ended by a sweep"

# ---- jobs by number, as a sweep asks for its own ----

ids()
{
	curl -s --unix-socket D/heddle.sock "http://localhost/v1/jobs?$1" >out
	grep -oE '[{]"id":[0-9]+' out | grep -oE '[0-9]+' | paste -sd' '
}
same "$(ids 'ids=2.4-6.99999')" '2 4 5 6' "jobs by number"
same "$(ids 'ids=2.4-6&limit=2&after=2') $(grep -o '"more":[a-z]*' out)" '4 5 "more":true' "a page of them"
for bad in 3.2 2.2 5-4 1- -1 1. 1..2 x 1-1001 0-9 99999999999999999999; do
	ids "ids=$bad" >/dev/null
	grep -qE '"error":"(ids|GET)' out || failed "ids=$bad is taken: $(cat out)"
done

# ---- what a run cannot answer any more is run again, and is the same ----

one() { expect 0 heddle sweep "$@" --dir D; }
cp D/sweeps/one/table.json want.json
lose() { sed -i '$d' D/sweeps/"$1"/record.ndjson && rm D/sweeps/"$1"/table.json; }
lose one
post /one-t0
sed -i '$d' "$(number run)/metrics.ndjson"
one one.yaml
says 'is run again, as another run'
cmp -s want.json D/sweeps/one/table.json || failed "a trial that is run again has another result: $(cat out)"
runs=$(ls D/runs | wc -l)
lose one
one one.yaml
cmp -s want.json D/sweeps/one/table.json || failed "started again, it has another result: $(cat out)"
same "$(ls D/runs | wc -l)" "$runs" "runs after a sweep that found the trial run again"

# Another job went on with the run of a trial: the one that did is made one that the sweep knows nothing of.
printf '%s\n' 'job: job.yaml' 'method: halving' 'draw: grid' 'space: {optim.lr: [0.01]}' \
	'steps: {min: 1, max: 3, eta: 3}' >two.yaml
one two.yaml -q
cp D/sweeps/two/table.json want.json
lose two
kill $served
wait $served
python3 - <<'END'
import sqlite3
db = sqlite3.connect("D/jobs.sqlite")
assert db.execute("UPDATE job SET key = NULL WHERE id = (SELECT max(id) FROM job)").rowcount == 1
db.commit()
END
"$HEDDLE_BIN" serve --dir D --pool cpu:1,far:1 --policy fifo --round 0.5 -q 2>serve.err &
served=$!
await test -S D/heddle.sock
one two.yaml
says 'is run again, as another run'
cmp -s want.json D/sweeps/two/table.json || failed "after another job went on: $(cat out)"
kill $served
wait $served
passed "what a run cannot answer any more is run again, and is the same; a restart finds it"

# ---- a user's scheduler that dies as a sweep begins: met, and gone when it is asked for its devices ----

if has_failpoints; then
	HD_FAIL=daemon.answer:kill@2 "$HEDDLE_BIN" serve --dir D --pool cpu:1,far:1 --policy fifo \
		--round 0.5 -q 2>serve.err &
	served=$!
	disown
	await test -S D/heddle.sock
	"$HEDDLE_BIN" sweep two.yaml --name three --dir D -q >out 2>err & of=$!
	await not kill -0 $served
	"$HEDDLE_BIN" serve --dir D --pool cpu:1,far:1 --policy fifo --round 0.5 -q 2>serve.err &
	served=$!
	wait $of || failed "a scheduler that died as the sweep began ends it: $(cat err)"
	kill $served
	wait $served
	passed "a scheduler that dies as a sweep begins is waited for"
fi
