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
cat >sinfo.csv <<'END'
NodeHost,StateCompact,PartitionName,Gres,GresUsed
n1,mix,gpu,gpu:a100:4(S:0-1),"gpu:a100:3(IDX:0,2-3)"
n2,idle,gpu,gpu:a100:4(S:0-1),gpu:a100:0(IDX:N/A)
n2,idle,long,gpu:a100:4(S:0-1),gpu:a100:0(IDX:N/A)
n3,down*,gpu,gpu:v100:8,gpu:v100:0
n4,idle,gpu,gpu:v100:2,gpu:v100:0
c1,idle,cpu,(null),gpu:0
END
cat >squeue.csv <<'END'
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
cat >squeue.csv <<'END'
JobArrayID,ArrayTaskID,State,UserName,Account,Partition,SubmitTime,StartTime,TimeLimit,tres-alloc,Reason,Name
201,N/A,PENDING,cy,nlp,long,1790000100,N/A,04:00:00,"cpu=4,gres/gpu=1",Resources,any
202,N/A,PENDING,cy,nlp,gpu,1790000200,N/A,04:00:00,"cpu=4,gres/gpu=8,gres/gpu:v100=8",Resources,down
END
PATH=$PWD/bin:$PATH expect 0 heddle sched advise --policy fifo --json
says '"partition":"long","gpus":1,"type":"","starts":true,"nodes":"n2:1"'
says '"gpus":8,"type":"v100","starts":false,"nodes":"","code":"DRAINING"'
passed "partitions and nodes that are down"

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
