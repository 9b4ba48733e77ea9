#!/bin/bash
# slurm_fake.sh -- as little of Slurm as a launcher asks for, where there is none: called as sbatch, squeue,
# scancel, sinfo or srun it does what these do, by files in the folder FAKE_SLURM. squeue is its scheduler,
# too: what waits begins when it is called; with a file `again` in the folder also as
# it is submitted and, once its node is free, after it was preempted. Not a test of Slurm, but of what is said
# to it.
at=$FAKE_SLURM

of() { cat "$at/jobs/$1/$2" 2>/dev/null; }
put() { echo "$3" >"$at/jobs/$1/$2"; }
jobs() { ls "$at/jobs" 2>/dev/null; }
feature() { case $1 in v*) echo v100 ;; *) echo k80 ;; esac; }

nodes_of() { local n; n=$(of "$1" nodes); echo "${n:-1}"; }

begin()         # job, nodes
{
	put "$1" node "$2"
	put "$1" state RUNNING
	rm -f "$at/jobs/$1/code"
	SLURM_JOB_ID=${1/_/} SLURM_ARRAY_JOB_ID=${1%_*} SLURM_ARRAY_TASK_ID=${1#*_} \
		SLURM_PROCID=0 SLURM_NTASKS=$(nodes_of "$1") SLURM_LOCALID=0 SLURMD_NODENAME=${2%%,*} \
		FAKE_NODES=$2 FAKE_JOB=$at/jobs/$1 \
		SLURM_CPUS_ON_NODE=2 \
		SLURM_TASKS_PER_NODE=1 setsid bash -c '
		bash "$0/script" >>"$(cat "$0/log")" 2>&1 </dev/null &
		echo $! >"$0/pid"
		wait $!
		echo $? >"$0/code"' "$at/jobs/$1" >/dev/null 2>&1 </dev/null &
}

schedule()
{
	local job node busy
	exec 8>"$at/lock"
	flock 8
	for job in $(jobs); do
		[ "$(of "$job" state)" = RUNNING ] && [ -e "$at/jobs/$job/code" ] || continue
		case $(of "$job" next):$(of "$job" code) in
		PREEMPTED:*|CANCELLED:*) put "$job" state "$(of "$job" next)"; put "$job" next '' ;;
		PENDING:*) put "$job" state PENDING; put "$job" next ''; put "$job" reason BeginTime
			put "$job" restarts 1 ;;
		*:0) put "$job" state COMPLETED ;;
		*) put "$job" state FAILED ;;
		esac
		[ "$(of "$job" state)" != PENDING ] || put "$job" node ''
	done
	[ ! -e "$at/closed" ] || return
	for job in $(jobs); do
		[ "$(of "$job" state)" = PENDING ] || continue
		[ -z "$(of "$job" restarts)" ] || [ -e "$at/again" ] || continue
		busy=,$(grep -lx RUNNING "$at"/jobs/*/state 2>/dev/null | while read -r one; do
			cat "${one%/state}/node"; done | tr '\n' ,)
		free=() want=$(nodes_of "$job")
		for node in v1 v2 k1 k2; do
			[[ $(feature $node) == "$(of "$job" feature)"* && $busy != *,$node,* ]] &&
				[ ! -e "$at/down.$node" ] && [ ${#free[@]} -lt "$want" ] && free+=("$node")
		done
		[ ${#free[@]} -lt "$want" ] || begin "$job" "$(IFS=,; echo "${free[*]}")" 8>&-
		[ "$(of "$job" state)" = RUNNING ] || put "$job" reason Resources
	done
}

# Slurm signals the tasks of a step and the batch step, whose srun hands it on: tasks get it twice.
signals() { kill $(cat "$at/jobs/$1"/task.* 2>/dev/null) "$(of "$1" pid)" 2>/dev/null; }
end()
{
	# one that runs is over when it has ended
	case $(of "$1" state) in
	RUNNING) put "$1" next CANCELLED; signals "$1" ;;
	*) put "$1" state CANCELLED ;;
	esac
}

case ${0##*/} in
sinfo)
	[[ " $* " != *' -p nope '* ]] || exit 0
	for node in v1 v2 k1 k2; do echo "$node|127.0.0.1|idle|(null)|$(feature $node)"; done
	;;
sbatch)
	for word; do
		case $word in
		--array=0-*) last=${word#--array=0-} ;;
		--*) ;;
		*) script=$word ;;
		esac
	done
	if grep -q '^#SBATCH --mem=9T$' "$script"; then
		echo "sbatch: error: Requested node configuration is not available" >&2
		exit 1
	fi
	exec 7>"$at/lock.id"
	flock 7
	id=$(($(cat "$at/last" 2>/dev/null || echo 0) + 1))
	echo $id >"$at/last"
	exec 7>&-
	for i in $(seq 0 "$last"); do
		mkdir -p "$at/new/${id}_$i"
		cp "$script" "$at/new/${id}_$i/script"
		sed -n 's/^#SBATCH --nodes=//p' "$script" >"$at/new/${id}_$i/nodes"
		sed -n 's/^#SBATCH --job-name=//p' "$script" >"$at/new/${id}_$i/name"
		sed -n 's/^#SBATCH --constraint=//p' "$script" >"$at/new/${id}_$i/feature"
		sed -n "s/^#SBATCH --output=\"\(.*\)%A_%a\(.*\)\"$/\1${id}_$i\2/p" "$script" \
			>"$at/new/${id}_$i/log"
		echo PENDING >"$at/new/${id}_$i/state"
		mv "$at/new/${id}_$i" "$at/jobs/"
	done
	echo $id
	[ ! -e "$at/again" ] || schedule
	;;
squeue)
	schedule
	for word; do [[ $word != --name=* ]] || name=${word#--name=}; done
	for job in $(jobs); do
		[ "$(of "$job" name)" = "${name:-$(of "$job" name)}" ] || continue
		code=$(of "$job" code)
		restarts=$(of "$job" restarts) reason=$(of "$job" reason) node=$(of "$job" node)
		echo "$job|$(of "$job" state)|$((${code:-0} * 256))|${restarts:-0}|$node|${reason:-None}|"
	done
	;;
scancel)
	for word; do
		case $word in
		--name=*) name=${word#--name=} ;;
		--state=PENDING) pending=1 ;;
		*) ids="${ids:-} $word" ;;
		esac
	done
	for job in ${ids:-$(jobs)}; do
		[ -z "${name:-}" ] || [ "$(of "$job" name)" = "$name" ] || continue
		case $(of "$job" state):${pending:-} in
		PENDING:*|RUNNING:) end "$job" ;;
		esac
	done
	;;
srun)           # a task on each node
	while [[ $1 == --* ]]; do shift; done
	rank=0 tasks=()
	trap 'kill "${tasks[@]}" 2>/dev/null' TERM
	trap 'kill -USR1 "${tasks[@]}" 2>/dev/null' USR1
	for node in ${FAKE_NODES//,/ }; do
		SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURMD_NODENAME=$node "$@" &
		tasks+=($!)
		echo $! >"$FAKE_JOB/task.$rank"
		rank=$((rank + 1))
	done
	code=0
	for task in "${tasks[@]}"; do
		until wait "$task"; one=$?; ! kill -0 "$task" 2>/dev/null; do :; done
		[ $one -le $code ] || code=$one
	done
	exit $code
	;;
preempt)        # node: its job has to go, and is in the queue again
	for job in $(jobs); do
		[[ ,$(of "$job" node), == *,$1,* ]] && [ "$(of "$job" state)" = RUNNING ] || continue
		put "$job" next "$(grep -q '^#SBATCH --no-requeue' "$at/jobs/$job/script" && echo PREEMPTED ||
			echo PENDING)"
		signals "$job"
		[ -e "$at/again" ] || continue
		until [ -e "$at/jobs/$job/code" ]; do sleep 0.05; done
		schedule
	done
	;;
esac
