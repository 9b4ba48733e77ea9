#!/bin/bash
# heddle sched import and compare on an accounting of Slurm: as it was, and by Slurm's own rules, against
# a replay in Python that shares no code with them.
. "$(dirname "$0")/program.sh"

cluster=a100:4,k80:4,v100:8
python3 "$SOURCE_DIR/tests/sacct_generate.py" 420 3 $cluster >sacct.txt
expect 0 heddle sched import sacct.txt -o month.csv --json
python3 - <<'END' || failed "rows of every kind are counted"
import json
counts = json.load(open("out"))
assert counts["jobs"] > 100 and counts["rejoined"] > 0, counts
assert sum(counts["left_out"].values()) + counts["jobs"] == 420, counts
END
passed "every row of an accounting is a job, or counted by its reason"

# columns of Slurm 24 and 25; bars in a text that is not kept are whosever they are, in a name they are not
cat >new.txt <<'END'
JobID|JobName|Partition|State|Submit|ElapsedRaw|AllocTRES|SubmitLine|Restarts|StdOut|Planned|Extra
1|a|gpu,debug|COMPLETED|2026-01-01T00:00:00|60|gres/gpu=2|sbatch --wrap "a | b|c"|0|/x|00:01:00|
2+0|h|gpu|COMPLETED|2026-01-01T00:00:00|60|gres/gpu:a100=1|x|0|/x|00:01:00|
2+1|h|gpu|COMPLETED|2026-01-01T00:00:00|60|gres/gpu:a100=1|x|0|/x|00:01:00|
3|b||COMPLETED|2026-01-01T00:00:00|60|gres/gpu=1|x|0|/x|00:01:00|
4|cut|gpu|COMPL
END
expect 0 heddle sched import new.txt -o new.csv --json
says '"jobs":3,"rejoined":1,"without_partition":1'
says '"fields":1'
same "$(cut -d, -f 1,5 new.csv | tail -n +2 | paste -sd ' ')" '1,"gpu 2+0,gpu 3,' "jobs and partitions"
passed "columns of newer accountings, lists of partitions, rows that are cut"

# what was recorded is what the accounting says, within 1 %: here, to the second
expect 0 heddle sched compare --trace month.csv --cluster $cluster --policy as-it-was,slurm,fifo \
	--by account --json
cp out compared.json
python3 - <<'END' || failed "as-it-was is not what was recorded"
import csv, json
rows = list(csv.DictReader(open("month.csv")))
waits = [float(r["start"]) - float(r["submit"]) for r in rows]
long = max(float(r["end"]) for r in rows) - min(float(r["submit"]) for r in rows)
was, slurm, fifo = json.load(open("compared.json"))
assert abs(was["waits"]["mean_s"] - sum(waits) / len(waits)) < 1e-6 * long, was["waits"]
assert was["waits"]["max_s"] == max(waits) and was["makespan_s"] == long, was["makespan_s"]
assert was["waits"]["p50_s"] == sorted(waits)[-(-len(waits) // 2) - 1]
for run in was, slurm, fifo:
    groups = {g["name"]: g for g in run["groups"]}
    assert sum(g["jobs"] for g in groups.values()) == len(rows) == run["waits"]["jobs"]
    assert list(groups) == sorted({r["account"] for r in rows}), groups
for name, g in {g["name"]: g for g in was["groups"]}.items():
    of = [w for w, r in zip(waits, rows) if r["account"] == name]
    assert abs(g["mean_s"] - sum(of) / len(of)) < 1e-6 * long, (name, g)
END
passed "as it was: the waits, groups and makespan that were recorded"

replayed()              # SETTING [LIST OPTION DEVICES]
{
	expect 0 heddle sched simulate --trace "${2:-month.csv}" "${3:---cluster}" "${4:-$cluster}" \
		--policy slurm --rows rows.csv ${1:+--slurm "$1"}
	python3 "$SOURCE_DIR/tests/slurm_replay.py" "${2:-month.csv}" "${4:-$cluster}" "$1" >replay.txt ||
		failed "the replay"
	python3 - <<'END' || failed "--slurm '$*': the replay begins jobs at other times"
import csv
want = [line.split() for line in open("replay.txt")]
rows = list(csv.DictReader(open("rows.csv")))
assert len(rows) == len(want) - 2 > 100
for r, (id, was, begins, lost) in zip(rows, want):
    said = r["first_start_s"]
    assert r["recorded_id"] == id and abs(float(r["lost_s"]) - float(lost)) < 1e-6, (r, begins, lost)
    assert not said if begins == "None" else abs(float(said) - float(begins)) < 1e-6, (r, begins)
END
}
replayed ""
replayed backfill=easy,age=0,half-life=3600,fairshare=300,size=3000
replayed backfill=none,small
replayed share.lab1=3,share.u05=2,partition.gpu=5,qos.high=10,qos=2000,depth=7
passed "slurm: a replay from the rules begins every job at the same second"

# nodes in partitions: of a higher tier, with a limit, preempted; some jobs name none, or two
nodes=a100:8,k80:4,v100:12
python3 "$SOURCE_DIR/tests/sacct_generate.py" 420 5 $nodes 0.9 sinfo.txt >sacct.txt
expect 0 heddle sched import sacct.txt -o parted.csv
replayed "" parted.csv --partitions sinfo.txt
says 'jobs were preempted'
says 'ask for longer than MaxTime of their partitions'
says 'named no partition of sinfo.txt'
python3 - <<'END' || failed "the month has no jobs of each kind"
import csv
rows = {r["recorded_id"]: r for r in csv.DictReader(open("rows.csv"))}
assert sum(float(r["lost_s"]) > 0 for r in rows.values()) > 3
assert sum(not r["first_start_s"] for r in rows.values()) > 0
assert sum("," in r["partition"] for r in rows.values()) > 3
END
replayed backfill=easy,partition=30000,partition.small=9 parted.csv --partitions sinfo.txt
replayed backfill=none,age=0,size=5000,depth=9 parted.csv --partitions sinfo.txt
sed 's/REQUEUE/OFF    /; s/CANCEL/OFF   /' sinfo.txt >calm.txt
replayed fairshare=0 parted.csv --partitions calm.txt
if grep -q preempted err; then failed "preempted where PreemptMode is OFF"; fi
passed "slurm with partitions: every start, and every second that a preempted job lost, as by the replay"

expect 0 heddle sched compare --trace parted.csv --partitions sinfo.txt \
	--policy as-it-was,slurm,fifo --price a100:2 --by partition --json
cp out parted.json
python3 - <<'END' || failed "as-it-was with partitions is not what was recorded"
import csv, json
rows = list(csv.DictReader(open("parted.csv")))
waits = [float(r["start"]) - float(r["submit"]) for r in rows]
long = max(float(r["end"]) for r in rows) - min(float(r["submit"]) for r in rows)
was, slurm, fifo = json.load(open("parted.json"))
assert abs(was["waits"]["mean_s"] - sum(waits) / len(waits)) < 1e-6 * long, was["waits"]
assert was["makespan_s"] == long and was["waits"]["max_s"] == max(waits), was
names = sorted({r["partition"] or "-" for r in rows})
for run in was, slurm, fifo:
    assert [g["name"] for g in run["groups"]] == names, run["groups"]
    assert sum(g["device_h"] for g in run["groups"]) - run["waits"]["device_h"] < 1e-6 * long
a100 = sum(int(r["gpus"]) * (float(r["end"]) - float(r["start"])) for r in rows if r["type"] == "a100")
assert abs(was["cost"] - 2 * a100 / 3600) < 1e-6 * a100, (was["cost"], a100)
END
! grep -q 'as it was, jobs held' err || failed "jobs that keep to their partitions are said not to"
# no job is where its partition has no node: by types in the rows
expect 0 heddle sched simulate --trace parted.csv --partitions sinfo.txt --policy fifo --rows rows.csv
python3 - <<'END' || failed "fifo takes devices of other partitions"
import csv
rows, n = list(csv.DictReader(open("rows.csv"))), 0
for r in rows:
    for column, seconds in r.items():
        if "@" in column and float(seconds or 0) > 0 and r["partition"] not in ("", "gone"):
            n += 1
            on = column.split("@")[1].removesuffix("_s").split("+")
            assert set(r["partition"].split(",")) & set(on), (column, r)
assert n > 50, rows[0]
END
expect 0 heddle sched compare --trace parted.csv --partitions sinfo.txt --policy slurm \
	--partition debug --json
python3 - <<'END' || failed "a job of a list of partitions counts for each"
import csv, json
n = sum("debug" in r["partition"].split(",") for r in csv.DictReader(open("parted.csv")))
assert json.load(open("out"))[0]["waits"]["jobs"] == n > 3
END
expect 2 heddle sched compare --trace parted.csv --partitions sinfo.txt --cluster a100:4 --policy slurm
says 'or --partitions FILE'
expect 3 heddle sched compare --trace parted.csv --partitions parted.csv --policy slurm
says 'parted.csv:1: the line'
expect 2 heddle sched simulate --trace parted.csv --partitions sinfo.txt --policy fifo --log x.ndjson
says 'does not hold partitions'
passed "as it was, policies and tables with partitions"

# users without usage are equal, so the larger job is first: 2 devices are free at 100
head=$(head -n 1 month.csv)
printf '%s\n' "$head" 0,n,z,p,,,,,a,,2,1,0,0,100,100,100, 1,n,u,p,,,,,a,,1,1,5,100,110,10,10, \
	2,n,v,p,,,,,a,,2,1,6,110,120,10,10, >equal.csv
expect 0 heddle sched simulate --trace equal.csv --cluster a:2 --policy slurm --rows rows.csv \
	--slurm age=0,fairshare=1000,size=100
same "$(cut -d, -f4 rows.csv | tail -n +2 | paste -sd ' ')" "0 110 100" "when jobs of equal users begin"

# the generator's a100 is 3 times a k80, its v100 1.5 times; few jobs of unequal lengths say so within 30 %
expect 0 heddle sched compare --trace month.csv --cluster $cluster --policy slurm --speed measured --any-type
python3 - <<'END' || failed "measured speeds"
import re
said = re.findall(r"heddle: (\w+) is ([\d.]+) times as fast as (\w+)", open("err").read())
is_ = {(a, b): float(x) for a, x, b in said}
true = {"a100": 3, "v100": 1.5, "k80": 1}
assert len(is_) == 2 and all(abs(x * true[b] / true[a] - 1) < .3 for (a, b), x in is_.items()), is_
END
expect 3 heddle sched compare --trace month.csv --cluster $cluster,h100:1 --policy slurm --speed measured
says 'ran on h100 and on others; add h100:X'
expect 0 heddle sched compare --trace month.csv --cluster $cluster,h100:1 --policy slurm \
	--speed measured,h100:9
passed "speeds of types, measured from jobs of one name"

# filters say which are looked at; while importing, which are there
expect 0 heddle sched compare --trace month.csv --cluster $cluster --policy as-it-was --account lab1 \
	--min-gpus 2 --from 2026-09-22T00:00:00 --json
cp out some.json
expect 0 heddle sched import month.csv --account lab1 --min-gpus 2 --from 2026-09-22T00:00:00 -o some.csv
python3 - <<'END' || failed "filters"
import csv, json
rows = [r for r in csv.DictReader(open("month.csv")) if r["account"] == "lab1" and int(r["gpus"]) > 1 and
        float(r["submit"]) >= 1790035200]
assert 0 < len(rows) == json.load(open("some.json"))[0]["waits"]["jobs"] < 100, len(rows)
assert [r["job_id"] for r in rows] == [r["job_id"] for r in csv.DictReader(open("some.csv"))]
assert json.load(open("some.json"))[0]["makespan_s"] == json.load(open("compared.json"))[0]["makespan_s"]
END
expect 0 heddle sched compare --trace month.csv --cluster a100:4,k80:4,v100:4 --policy as-it-was
says 'as it was, jobs held 4 devices of a type at once more than this cluster has'
says 'waits for the start'
printf 'timestamp,duration,num_gpus\n1,5,1\n' >plain.csv
expect 3 heddle sched compare --trace plain.csv --cluster a:1 --policy as-it-was
says 'a list that does not say when jobs started'
expect 0 heddle sched compare --trace plain.csv --cluster a:1 --policy slurm
# devices that leave are nothing to these rows, which say so; of rounds they are all
expect 0 heddle sched compare --trace plain.csv --cluster a:1 --policy slurm,fifo --revoke a:1 --lost 60
says 'slurm: --revoke, --lost changes nothing in this row'
[ "$(grep -c 'changes nothing' err)" = 1 ] || failed "fifo does follow --revoke"
# a job that is too large for ever holds up no other one, however few are looked at
printf 'timestamp,duration,num_gpus\n1,5,9\n2,5,1\n3,5,1\n' >wide.csv
expect 0 heddle sched compare --trace wide.csv --cluster a:1 --policy slurm --slurm depth=1,size=9999 --json
says '"completed":2'
says '"ended":"jobs are left that no type has devices enough for"'
says 'slurm: 1 jobs ask for more devices than any type has'
expect 2 heddle sched compare --trace month.csv --cluster $cluster --policy slurm --slurm bckfill=easy
says 'did you mean backfill'
expect 2 heddle sched compare --trace month.csv --cluster $cluster --policy slurm --slurm backfill=some
expect 2 heddle sched compare --trace month.csv --cluster $cluster --policy slurm --slurm tier.gpu=1
expect 2 heddle sched simulate --trace month.csv --cluster $cluster --policy slurm --log x
expect 2 heddle sched compare --trace month.csv --cluster $cluster --policy slurm --from yesterday
passed "filters, and what cannot be"
