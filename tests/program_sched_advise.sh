#!/bin/bash
# heddle sched advise: what a policy would start next, from squeue and sinfo; here programs that print a
# made-up cluster in the columns they are asked for.
. "$(dirname "$0")/program.sh"

mkdir -p bin tmp
export TMPDIR=$PWD/tmp
cat >bin/slurm_columns.py <<'END'
"""Prints TABLE.csv in the columns of -O, each as wide as it says, as Slurm does."""
import csv
import sys

table, args = sys.argv[1], sys.argv[2:]
with open(table, newline="") as f:
    for row in csv.DictReader(f):
        for one in args[args.index("-O") + 1].split(","):
            name, width = one.split(":")
            sys.stdout.write(row[name][:int(width)].ljust(int(width)))
        print()
END
for program in squeue sinfo; do
	printf '#!/bin/sh\n[ "$SLURM_TIME_FORMAT" = %%s ] || exit 9\n' >bin/$program
	printf 'exec python3 "%s/bin/slurm_columns.py" "%s/%s.csv" "$@"\n' "$PWD" "$PWD" $program \
		>>bin/$program
	chmod +x bin/$program
done
# columns that a row does not say
cat >bin/more_columns.py <<'END'
import csv
import sys

MORE = {"Available": "up", "Time": "infinite", "PriorityTier": "1", "PriorityJobFactor": "1",
        "PreemptMode": "OFF", "tres-per-job": "N/A", "tres-per-node": "N/A", "NumNodes": "1",
        "PriorityLong": "1000", "Dependency": "(null)", "EligibleTime": "N/A", "Feature": "(null)",
        "ReqNodes": "", "NodeList": "", "ArrayTaskID": "N/A", "State": "PENDING", "UserName": "bob",
        "Account": "nlp", "SubmitTime": "1790000300", "StartTime": "N/A", "tres-alloc": "gres/gpu=1"}
rows = list(csv.DictReader(sys.stdin))
for r in rows:
    r.update(one.split("=", 1) for one in (r.pop("also", None) or "").split(";") if one)
names = list(rows[0]) + [k for k in MORE if k not in rows[0]]
names += [k for r in rows for k in r if k not in names]
to = csv.DictWriter(sys.stdout, names)
to.writeheader()
to.writerows({**MORE, **r} for r in rows)
END
more() { python3 bin/more_columns.py >"$1.csv"; }
more sinfo <<'END'
NodeList,StateCompact,PartitionName,Gres,GresUsed
n1,mix,gpu,gpu:a100:4(S:0-1),"gpu:a100:3(IDX:0,2-3)"
n2,idle,gpu,gpu:a100:4(S:0-1),gpu:a100:0(IDX:N/A)
n2,idle,long,gpu:a100:4(S:0-1),gpu:a100:0(IDX:N/A)
n3,down*,gpu,gpu:v100:8,gpu:v100:0
n4,idle,gpu,gpu:v100:2,gpu:v100:0
c1,idle,cpu,(null),gpu:0
END
more squeue <<'END'
JobArrayID,ArrayTaskID,State,UserName,Account,Partition,SubmitTime,StartTime,TimeLimit,tres-alloc,Reason,Name
90,N/A,RUNNING,ann,vision,gpu,1790000000,1790000100,1-00:00:00,"cpu=4,gres/gpu=3,gres/gpu:a100=3",None,old
101,N/A,PENDING,bob,nlp,gpu,1790000300,N/A,04:00:00,"cpu=4,gres/gpu=4,gres/gpu:a100=4",Resources,big
102,3,PENDING,ann,vision,gpu,1790000400,N/A,UNLIMITED,"cpu=4,gres/gpu=1,gres/gpu:a100=1",Priority,small
103,N/A,PENDING,cy,nlp,gpu,1790000500,N/A,04:00:00,"cpu=4,gres/gpu=4,gres/gpu:a100=4",Priority,next
104,N/A,PENDING,cy,nlp,gpu,1790000600,N/A,04:00:00,"cpu=4,gres/gpu=2",Dependency,after
105,N/A,PENDING,cy,nlp,gpu,1790000700,N/A,04:00:00,"cpu=4,gres/gpu=2,gres/gpu:v100=2",Priority,late
106,N/A,PENDING,cy,nlp,"gpu,long",1790000800,N/A,04:00:00,"cpu=4,gres/gpu=64,gres/gpu:a100=64",Priority,huge
107,N/A,PENDING,cy,nlp,cpu,1790000800,N/A,04:00:00,cpu=4,Priority,none
END

PATH=$PWD/bin:$PATH expect 0 heddle sched advise --policy fifo --json
cp out live.json
[ -z "$(ls tmp)" ] || failed "what squeue printed is left behind"
python3 - <<'END' || failed "what it would start"
import json
a = json.load(open("live.json"))
jobs = {j["job"]: j for j in a["jobs"]}
assert list(jobs) == ["101", "102_3", "103", "104", "105", "106"]
assert {j for j in jobs if jobs[j]["starts"]} == {"101", "102_3"}, jobs
assert jobs["101"]["nodes"] == "n2:4" and jobs["102_3"]["nodes"] == "n1:1"
assert jobs["105"]["code"] == "QUEUED"              # the head of the queue blocks
assert jobs["104"]["code"] == "HELD_BY_SLURM" and jobs["104"]["slurm"] == "Dependency"
assert jobs["103"]["code"] == "QUEUED" and jobs["103"]["why"], jobs["103"]
assert jobs["106"]["code"] == "UNRUNNABLE", jobs["106"]
free = {t["type"]: (t["free"], t["devices"]) for t in a["types"]}
assert free == {"a100@gpu": (1, 4), "a100@gpu+long": (4, 4), "v100": (2, 10)}, free
assert a["without_gpus"] == 1
END
passed "of a live cluster: what starts, where, and why others wait"

# the same from files, by every policy of this build, and as text
SLURM_TIME_FORMAT=%s PATH=$PWD/bin:$PATH squeue --noheader -O "$(
	heddle sched advise --help | sed -n 's/.*squeue --noheader.* -O //p' | tr -d ' ')" >squeue.txt
SLURM_TIME_FORMAT=%s PATH=$PWD/bin:$PATH sinfo --noheader -O "$(
	heddle sched advise --help | sed -n 's/.*sinfo --noheader.* -O //p' | tr -d ' ')" >sinfo.txt
files="--squeue squeue.txt --sinfo sinfo.txt"
expect 0 heddle sched advise --policy fifo $files --json
cmp -s out live.json || failed "files and programs say the same, the advice differs"
expect 0 heddle sched advise --policy isolated $files
says '7 of 18 GPUs are free'
says 'HELD_BY_SLURM, Slurm keeps it, for another reason than devices; Slurm says Dependency'
says 'start on n4:2'
expect 0 heddle sched advise --policy heddle $files --json
says '"starts":true'
passed "of files, by several policies"

# any type of GPU in partition long alone; and more than there are where nodes are down
more squeue <<'END'
JobArrayID,ArrayTaskID,State,UserName,Account,Partition,SubmitTime,StartTime,TimeLimit,tres-alloc,Reason,Name
201,N/A,PENDING,cy,nlp,long,1790000100,N/A,04:00:00,"cpu=4,gres/gpu=1",Resources,any
202,N/A,PENDING,cy,nlp,gpu,1790000200,N/A,04:00:00,"cpu=4,gres/gpu=8,gres/gpu:v100=8",Resources,down
END
PATH=$PWD/bin:$PATH expect 0 heddle sched advise --policy fifo --json
says '"partition":"long","gpus":1,"type":"","starts":true,"nodes":"n2:1"'
says '"gpus":8,"type":"v100","starts":false,"nodes":"","code":"DRAINING"'
passed "partitions and nodes that are down"

# what squeue's reason does not say yet: none of these can start. 309 and 310 can, by one of their partitions
more sinfo <<'END'
NodeList,StateCompact,PartitionName,Gres,GresUsed,Available,Time,PriorityTier
n1,idle,gpu,gpu:a100:4,gpu:a100:0,up,infinite,1
n2,idle,gpu,gpu:a100:4,gpu:a100:2,up,infinite,1
n2,idle,fast,gpu:a100:4,gpu:a100:2,up,1:00:00,10
n2,idle,shut,gpu:a100:4,gpu:a100:2,drain,infinite,20
c1,idle,cpu,(null),gpu:0,up,infinite,1
END
more squeue <<'END'
JobArrayID,Partition,TimeLimit,PriorityLong,Reason,Name,also
300,gpu,1:00:00,9,None,old,State=RUNNING;StartTime=1790000100;tres-alloc=gres/gpu=2;NodeList=n[2]
301,gpu,30:00,0,None,held,
302,gpu,30:00,90,None,after,Dependency=afterok:300(unfulfilled)
303,gpu,30:00,80,None,later,EligibleTime=1790009999
304,shut,30:00,70,Priority,shut,
305,fast,2:00:00,60,Resources,long,
306,gpu,30:00,50,Resources,feature,Feature=a100&big
307,cpu,30:00,50,Resources,nowhere,
308,gpu,30:00,45,None,two,tres-alloc=cpu=2;tres-per-node=gres:gpu:3;NumNodes=2
309,"shut,gpu",50:00,40,PartitionDown,both,tres-alloc=gres/gpu=4
310,"fast,gpu",30:00,30,None,tier,
311,gpu,59:00,20,"Nodes required for job are DOWN, DRAINED or reserved",fits,
312,gpu,2:00:00,10,None,delays,
END
for policy in slurm fifo priority-backfill isolated; do
	PATH=$PWD/bin:$PATH expect 0 heddle sched advise --policy $policy --json
	cp out $policy.json
done
python3 - <<'END' || failed "what cannot start is advised, or not named"
import json
codes = {"301": "HELD", "302": "DEPENDENCY", "303": "BEGIN_TIME", "304": "PARTITION_DOWN",
         "305": "PARTITION_LIMIT", "306": "ASKS_NODES", "307": "PARTITION_DOWN"}
for policy in "slurm", "fifo", "priority-backfill", "isolated":
    jobs = {j["job"]: j for j in json.load(open(policy + ".json"))["jobs"]}
    assert len(jobs) == 12
    for id, code in codes.items():
        assert jobs[id]["code"] == code and not jobs[id]["starts"] and jobs[id]["why"], (policy, jobs[id])
    assert any(j["starts"] for j in jobs.values()), policy
    assert not jobs["308"]["starts"], (policy, jobs["308"])       # three on each of two nodes
# by hand: 310 first by its tier, on n2; 308 waits for 300's end at 3700 s with n1 and n2; 309 ends before
# that on n1, 311 has what is left of n2 until then, and 312 would be in 308's way
slurm = {j["job"]: j for j in json.load(open("slurm.json"))["jobs"]}
starts = {id: j["nodes"] for id, j in slurm.items() if j["starts"]}
assert starts == {"309": "n1:4", "310": "n2:1", "311": "n2:1"}, starts
assert slurm["312"]["code"] in ("OUTRANKED", "HELD_BACK"), slurm["312"]
assert slurm["308"]["gpus"] == 6 and slurm["308"]["code"] == "GANG_NO_FIT", slurm["308"]
END
# the same where nodes are numbered by two numbers, and the second one may be 0
sed -i 's/^n1,/r0n9,/; s/^n2,/r1n10,/' sinfo.csv
sed -i 's/n\[2\]/"r[1,3]n[0-12]"/' squeue.csv
PATH=$PWD/bin:$PATH expect 0 heddle sched advise --policy slurm --json
sed 's/r0n9/n1/g; s/r1n10/n2/g' out | cmp -s - slurm.json ||
	failed "a running job's nodes in two brackets are not found"
passed "what cannot start is not advised, whatever squeue's reason; Slurm's own order is a policy"

expect 2 heddle sched advise --policy fifo --sinfo sinfo.txt
says 'go together'
expect 2 heddle sched advise
says 'which policy?'
PATH=/nonexistent expect 3 "$HEDDLE_BIN" sched advise --policy fifo
printf '#!/bin/sh\nexit 1\n' >bin/sinfo
PATH=$PWD/bin:$PATH expect 3 heddle sched advise --policy fifo
says 'sinfo ended with exit code 1; is this a machine of the cluster?'
cut -c -40 squeue.txt >short.txt
expect 3 heddle sched advise --policy fifo --squeue short.txt --sinfo sinfo.txt
says 'short.txt:1: the line ends before its last column'
grep c1 sinfo.txt >none.txt
expect 3 heddle sched advise --policy fifo --squeue squeue.txt --sinfo none.txt
says 'no node has GPUs'
: >empty.txt
expect 0 heddle sched advise --policy fifo --squeue empty.txt --sinfo sinfo.txt
says 'of 0 jobs that wait 0 would start'
passed "what cannot be is said"
