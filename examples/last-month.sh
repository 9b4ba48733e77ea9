#!/bin/sh
# What would another policy have given us last month? Run it where sacct is; or with a file that it printed:
# last-month.sh [SACCT.txt]. CLUSTER names your devices, POLICIES what to compare.
set -eu

heddle=${HEDDLE:-heddle}
cluster=${CLUSTER:?which devices? CLUSTER=a100:64,v100:128}
policies=${POLICIES:-as-it-was,slurm,heddle,las}
rows=${1:-sacct.txt}

if [ $# = 0 ]; then
	sacct --parsable --allusers --starttime="$(date -d '1 month ago' +%Y-%m-01)" \
		--endtime="$(date +%Y-%m-01)" --format=JobID,JobName,User,Account,Partition,QOS,State,Submit,\
Start,End,Timelimit,ElapsedRaw,NNodes,ReqTRES,AllocTRES >"$rows"
fi
"$heddle" sched import "$rows" -o month.csv
"$heddle" sched compare --trace month.csv --cluster "$cluster" --policy "$policies" --by account \
	--html month.html
