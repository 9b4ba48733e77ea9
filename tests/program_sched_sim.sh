#!/bin/bash
# heddle sched simulate, compare, gen, import: jobs of a cluster that does not exist.
. "$(dirname "$0")/program.sh"

# a table of rates of two kinds on two types, and a trace of four jobs
cat > rates.json <<'J'
{"v100": {"('A', 1)": {"null": 10.0, "('A', 1)": [6.0, 6.0]}, "('B', 2)": {"null": 4.0}},
 "k80": {"('A', 1)": {"null": 2.0, "('A', 1)": [1.5, 1.5]}, "('B', 2)": {"null": 1.0}}}
J
printf '%s\tc\td\t-n\t0\t%s\t%s\t%s\t%s\t%s\n' A 3600 1 1 -1 0 A 7200 1 1 -1 0 B 3600 2 1 -1 60 \
	A 3600 1 2 2 120 > jobs.trace
printf '%s\n' timestamp,duration,num_gpus '2017-10-03 00:00:00,100,1' '2017-10-03 00:01:00,50,2' \
	'2017-10-03 00:02:00,0,1' > philly.csv

expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated --json
for key in avg_jct_s median_jct_s p95_jct_s makespan_s cost utilization jobs; do says "\"$key\":"; done
same "$(number completed)" 4 "jobs that are over"
cp out one.json
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster k80:2,v100:2 \
	--policy isolated --json
cmp -s out one.json || failed "the order of the types changes the answer"
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy fifo_perf --faithful --json
# by hand: A 3600 / 10 on v100 at 0; A 7200 / 10; B on k80 at the turn that begins at 360: 3600 / 1; A on v100
# after it
says '"jct_s":360'
same "$(number completed)" 4 "jobs that are over, faithfully"
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated --rows rows.csv --log log.ndjson
[ "$(wc -l < rows.csv)" = 5 ] || failed "rows.csv: one line a job and a header"
grep -m 1 '"round"' log.ndjson | grep -q '^{"at":0,"round":\[{"start":0,"on":\[' ||
	failed "the log begins with the first round"
cp log.ndjson before.ndjson
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated --log log.ndjson
cmp -s log.ndjson before.ndjson || failed "equal inputs, other decisions"
passed "simulate: the answer, rows and decisions"

expect 0 heddle sched compare --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated,fifo --json
says '"policy":"isolated"'
says '"policy":"fifo"'
expect 0 heddle sched compare --trace philly.csv --cluster gpu:4 --policy isolated,fifo
says 'makespan'
passed "compare: one line a policy"

expect 0 heddle sched import philly.csv
[ "$(wc -l < out)" = 2 ] || failed "two of three rows are work"
cp out philly.trace
expect 0 heddle sched import philly.trace
cmp -s out philly.trace || failed "a trace imports to itself"
expect 0 heddle sched gen --count 100 --seed 3
[ "$(wc -l < out)" = 100 ] || failed "100 jobs"
cp out gen.trace
expect 0 heddle sched gen --count 101 --seed 3
head -100 out | cmp -s - gen.trace || failed "one job more changes those before it"
passed "gen and import: traces"

# rows of Slurm's accounting, of a cluster that is made up: types, accounts and starts count, bad rows are
# named and left out
cp "$(material data/slurm/sacct.txt)" sacct.txt
slurm="--trace sacct.txt --cluster a100:8,v100:4 --speed a100:3 --policy isolated"
expect 0 heddle sched simulate $slurm --rows rows.csv --log slurm.ndjson --json
says 'heddle: sacct.txt: 3 rows could not be read and are left out:'
says 'sacct.txt:16:44: Submit "Unknown" is no time'
says 'sacct.txt: 1 job without GPUs is left out (--map gpus=NNodes takes one device a node)'
says 'sacct.txt: 1 job still ran when it was written'
says '1 job had devices of a type that the cluster has not (h100...)'
says '"recorded_id":"412010+0","recorded_wait_s":7200'
says '"recorded":{"jobs":8,'
python3 - <<'END' || failed "what the accounting said is not in the rows"
import csv
rows = {r["recorded_id"]: r for r in csv.DictReader(open("rows.csv"))}
assert len(rows) == 9 and rows["412016"]["name"] == 'eval, "quick"', rows.keys()
r = rows["412001"]
named = [r[k] for k in ("user", "account", "partition", "qos", "type")]
assert named == ["amara", "vision", "gpu", "normal", "a100"], r
assert float(r["limit_s"]) == 14400 and float(r["recorded_wait_s"]) == 130, r
assert rows["412011"]["limit_s"] == "", r
for id, r in rows.items():                       # a job that named a type ran there alone
    other = {"a100": "v100_s", "v100": "a100_s"}.get(r["type"])
    assert not other or float(r[other] or 0) == 0, (id, r)
# an hour there on two of a100 is an hour here on two of a100, fast as that is
r = rows["412001"]
assert float(r["finish_s"]) - float(r["first_start_s"]) - float(r["lost_s"]) >= 3600 - 1e-6, r
END
cp slurm.ndjson again.ndjson
expect 0 heddle sched replay again.ndjson
expect 0 heddle sched simulate $slurm --entities vision:2,nlp:1,dina:1 --policy hierarchy --json
expect 3 heddle sched simulate $slurm --entities vision:2 --policy hierarchy --json
says 'which is no entity'
expect 0 heddle sched import sacct.txt -q
[ ! -s err ] && [ "$(wc -l <out)" = 10 ] || failed "-q says nothing of rows that are left out"
expect 0 heddle sched import sacct.txt -o recorded.csv --json
says '{"jobs":9,"rejoined":1,"without_partition":0,"left_out":{"step":5,"no_gpu":1,"waited":2,"no_time":0,'
says 'left out are rows steps of jobs: 5, without GPUs: 1, never started'
expect 0 heddle sched import recorded.csv -o again.csv
cmp -s recorded.csv again.csv || failed "the written form reads back to itself"
expect 0 heddle sched simulate $slurm --json -q
cp out accounted.json
expect 0 heddle sched simulate --trace recorded.csv --cluster a100:8,v100:4 --speed a100:3 --policy isolated \
	--json -q
cmp -s out accounted.json || failed "the written form gives another simulation"
expect 2 heddle sched import sacct.txt --json
says 'say with -o FILE where the jobs go'
expect 2 heddle sched import recorded.csv --throughputs rates.json
says 'whose kinds the rates do not know'
printf 'JobID|Submit|Elapsed|AllocTRES|\n1|2024-01-01T00:00:00|00:10|cpu=4|\n' >cpu.txt
expect 3 heddle sched import cpu.txt
says 'no job is left: 1 have no GPU'
passed "sacct: what Slurm accounted is kept, and a bad row costs that row"

expect 0 heddle sched compare --trace philly.csv --cluster gpu:2 \
	--policy priority,priority-backfill,wfs,wfs-2020 --elastic max=2,speedup=1:1.9 --json
for policy in priority priority-backfill wfs wfs-2020; do says "\"policy\":\"$policy\""; done
expect 2 heddle sched simulate --trace philly.csv --cluster gpu:2 --policy wfs --elastic max=2,speedup=0:1
says 'one number for each count of devices'
passed "jobs that are resized"

expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2
says 'which policy? --policy NAME'
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --policy isolated
says 'which devices? --cluster'
expect 2 heddle sched simulate --throughputs rates.json --cluster v100:2 --policy isolated
says 'which jobs? either --trace FILE or --generate'
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster h100:2 --policy isolated
says 'has no type "h100"'
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:x --policy isolated
says 'TYPE:NUMBER'
printf 'A\tc\td\t-n\t0\tmany\t1\t1\t-1\t0\n' > bad.trace
expect 3 heddle sched simulate --trace bad.trace --throughputs rates.json --cluster v100:2 --policy isolated
says 'bad.trace:1:12: total steps'
printf 'C\tc\td\t-n\t0\t5\t1\t1\t-1\t0\n' > unknown.trace
expect 3 heddle sched simulate --trace unknown.trace --throughputs rates.json --cluster v100:2 \
	--policy isolated
says 'job 0 is "C" on 1 devices, which the rates do not know'
if rates=$(material data/gavel/throughputs/simulation_throughputs.json); then
	many="--throughputs $rates --cluster v100:9,k80:9,p100:3 --policy fifo"
	expect 0 heddle sched simulate --generate rate=3,seed=7,first=50,end=60 $many --tune stop=1
	! grep -q 'the queue grows' err || failed "a simulation that is stopped is warned of: $(cat err)"
	expect 0 heddle sched simulate --generate rate=0.2,seed=7,first=5,end=9 $many
	! grep -q 'the queue grows' err ||
		failed "a cluster that gets done what comes is warned of: $(cat err)"
	expect 0 heddle sched simulate --generate rate=4,seed=7,first=5,end=9 $many
	says 'the queue grows without end, and jobs 5 to 8 may never all be over'
	passed "more than a cluster gets done is reported before the simulation begins"
else
	echo "skip: a queue that grows without end (no data/gavel)"
fi

expect 2 heddle sched simulate --generate rate=1,seed=0 --throughputs rates.json --cluster v100:2 \
	--policy isolated
says '--generate without an end'
expect 3 heddle sched import philly.csv --map submit=when
says 'the header has no column "when" (submit)'
passed "mistakes are named"

expect 0 heddle sched compare --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated,fifo --html page.html
for word in isolated fifo 'Job completion time' 'Busy devices' 'Devices of each job' "default-src 'none'"; do
	grep -q "$word" page.html || failed "the page lacks: $word"
done
! grep -qE '<script|https?:|nan' page.html || failed "the page needs something"
cp page.html before.html
expect 0 heddle sched compare --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated,fifo --html page.html --json
cmp -s page.html before.html || failed "equal runs, another page"
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy fifo --faithful --html one.html
grep -q "the published simulator's rules" one.html || failed "a faithful run's page does not say so"
expect 3 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy fifo --html /proc/none/x.html
passed "a page of one run, and of several"

# a place that cannot be written is reported before any time is simulated: jobs that the rates do not know are
# noticed only then
for option in --html --rows --log; do
	expect 3 heddle sched simulate --trace unknown.trace --throughputs rates.json --cluster v100:2 \
		--policy isolated $option /proc/none/x
	says '/proc/none/x'
	! grep -q 'rates do not know' out || failed "$option was looked at after the simulation"
done
expect 3 heddle sched compare --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy isolated,fifo --html /proc/none/x.html
! grep -q isolated out || failed "a policy ran for a page that cannot be written"
mkdir folder
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:2,k80:2 \
	--policy fifo --html folder
says 'it is a folder'
cp page.html kept.html
expect 3 heddle sched simulate --trace unknown.trace --throughputs rates.json --cluster v100:2 \
	--policy isolated --html kept.html
cmp -s page.html kept.html || failed "a page was lost to a simulation that failed"
[ ! -e kept.html.tmp ] || failed "a trial file was left"
passed "outputs are tried first"

if heddle sched policies --json | grep -q '"built":false'; then exit 0; fi
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:1,k80:1 \
	--policy las-packed --estimate q=0.2,r=1 --json
says '"estimate":{"pairs":'
expect 0 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:1,k80:1 \
	--policy las-packed --estimate q=0.2
says 'measured before'
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:1,k80:1 \
	--policy las --estimate q=0.2
says 'nothing is to be estimated'
expect 2 heddle sched simulate --trace jobs.trace --throughputs rates.json --cluster v100:1,k80:1 \
	--policy las-packed --estimate q=0
says '--estimate: q:'
passed "pairs that are estimated"
