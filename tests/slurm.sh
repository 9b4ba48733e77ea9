# slurm.sh -- a Slurm of four nodes on this machine, for tests (program_slurm.sh). Sourced after program.sh.
#
#	slurm_begin             # munged, slurmctld, slurmd for v1 v2 k1 k2, below $work/slurm
#	slurm_end               # ends them, by their pid files
#	slurm_preempts k1       # a job of a higher partition takes the node
#	slurm_node_ends k1      # its slurmd, as if the node had lost its power; slurm_node_begins k1
#	slurm_controller_ends, slurm_controller_begins
#	slurm_rest_begins       # slurmrestd; its socket and a token in the array `rest`, for `env`
#	slurm_rest_ends
#
# Where there is no Slurm, or no root, slurm_begin puts slurm_fake.sh in its place, and slurm_is_real is
# false.
# v1 and v2 have the feature v100 and two GPUs of that name (files that are none), the others k80.
# Partition `all` is the default; `high` goes before it and requeues its jobs. Ports are of this test alone.
# Nothing of a Slurm that is installed here for other uses is touched.

slurm_nodes=(v1 v2 k1 k2)

# Munge wants its daemon's folders to be its user's, and slurmd wants root.
slurm_is_real()
{
	local program
	[ "$(id -u)" = 0 ] && [ -z "${SLURM_FAKE:-}" ] || return
	for program in slurmctld slurmd munged sbatch squeue runuser; do
		PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || return
	done
}

slurm_fakes()
{
	local program
	mkdir -p "$work/fake" "$work/slurm/jobs" "$work/slurm/new"
	for program in sbatch squeue scancel sinfo srun preempt; do
		ln -s "$SOURCE_DIR/tests/slurm_fake.sh" "$work/fake/$program"
	done
	export PATH=$work/fake:$PATH FAKE_SLURM=$work/slurm
}

slurm_munge()
{
	local at=$1
	mkdir -p "$at/munge" "$at/mrun"
	chown munge "$at" "$at/munge" "$at/mrun"
	chmod 0755 "$at" "$at/mrun"
	head -c 128 /dev/urandom >"$at/munge/key"
	chown munge "$at/munge/key"
	chmod 0600 "$at/munge/key"
	chmod 0700 "$at/munge"
	runuser -u munge -- munged --key-file="$at/munge/key" --socket="$at/mrun/munge.socket" \
		--pid-file="$at/mrun/munged.pid" --log-file="$at/munge/munged.log" \
		--seed-file="$at/munge/seed" --num-threads=2
}

slurm_has_rest() { slurm_is_real && PATH=$PATH:/usr/sbin:/sbin command -v slurmrestd >/dev/null; }

slurm_kind() { case $1 in v*) echo v100 ;; *) echo k80 ;; esac; }
slurm_gpus()            # folder
{
	local node
	mkdir -p "$1/dev"
	echo AutoDetect=off
	for node in "${slurm_nodes[@]}"; do
		touch "$1/dev/${node}_0" "$1/dev/${node}_1"
		echo "NodeName=$node Name=gpu Type=$(slurm_kind "$node") File=$1/dev/${node}_[0-1]"
	done
}

slurm_settings()        # folder, first port
{
	local at=$1 port=$2 host node i=0
	host=$(hostname -s)
	! slurm_has_rest || cat <<-END
	AuthAltTypes=auth/jwt
	AuthAltParameters=jwt_key=$at/jwt.key
	END
	cat <<-END
	ClusterName=loop$port
	SlurmctldHost=$host(127.0.0.1)
	SlurmUser=root
	SlurmdUser=root
	AuthType=auth/munge
	CredType=cred/munge
	AuthInfo=socket=$at/mrun/munge.socket
	SlurmctldPort=$port
	SlurmctldPidFile=$at/run/slurmctld.pid
	SlurmdPidFile=$at/run/slurmd.%n.pid
	SlurmdSpoolDir=$at/spool/%n
	StateSaveLocation=$at/state
	SlurmctldLogFile=$at/log/slurmctld.log
	SlurmdLogFile=$at/log/slurmd.%n.log
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	MpiDefault=none
	SwitchType=switch/none
	ReturnToService=2
	SelectType=select/cons_tres
	SelectTypeParameters=CR_Core
	GresTypes=gpu
	PreemptType=preempt/partition_prio
	PreemptMode=REQUEUE
	SchedulerType=sched/backfill
	SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
	AccountingStorageType=accounting_storage/none
	JobCompType=jobcomp/none
	JobAcctGatherType=jobacct_gather/none
	SlurmctldTimeout=30
	SlurmdTimeout=${SLURM_NODE_TIMEOUT:-30}
	InactiveLimit=0
	KillWait=5
	MinJobAge=300
	SlurmdParameters=config_overrides
	NodeName=DEFAULT CPUs=2 RealMemory=2000 State=UNKNOWN
	END
	for node in "${slurm_nodes[@]}"; do
		i=$((i + 1))
		echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i))" \
			"Feature=$(slurm_kind "$node") Gres=gpu:$(slurm_kind "$node"):2"
	done
	cat <<-END
	PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO
	PartitionName=all Default=YES PriorityTier=1
	PartitionName=high PriorityTier=10 PreemptMode=OFF
	END
}

slurm_up() { [ "$(sinfo -h -N -p all -t idle -o %N 2>/dev/null | wc -l)" = "${#slurm_nodes[@]}" ]; }
slurm_controller_begins() { slurmctld ${1:-} -f "$SLURM_CONF" >/dev/null 2>&1; }
slurm_node_begins() { slurmd -N "$1" -f "$SLURM_CONF" >/dev/null 2>&1; }

# five ports that no process has
slurm_ports()
{
	local base i hex
	for base in $(seq $((20000 + $$ % 5000 * 2)) 5 31000); do
		for i in 0 1 2 3 4; do
			hex=$(printf ":%04X " $((base + i)))
			! grep -qi "$hex" /proc/net/tcp /proc/net/tcp6 2>/dev/null || continue 2
		done
		echo "$base"
		return
	done
}

slurm_begin()
{
	local at=$work/slurm node
	slurm_is_real || { slurm_fakes; return; }
	PATH=$PATH:/usr/sbin:/sbin
	chmod 0755 "$work"
	mkdir -p "$at/run" "$at/state" "$at/log"
	slurm_at=$at
	slurm_munge "$at" || return
	(umask 077; head -c 32 /dev/urandom >"$at/jwt.key")
	slurm_settings "$at" "$(slurm_ports)" >"$at/slurm.conf"
	slurm_gpus "$at" >"$at/gres.conf"
	export SLURM_CONF=$at/slurm.conf
	for node in "${slurm_nodes[@]}"; do mkdir -p "$at/spool/$node"; done
	slurm_controller_begins -c || return
	for node in "${slurm_nodes[@]}"; do slurm_node_begins "$node" || return; done
	await slurm_up
}

slurm_pid() { cat "$slurm_at/$1" 2>/dev/null; }
slurm_is_gone() { ! grep -q '^State:[[:space:]][^ZX]' "/proc/$1/status" 2>/dev/null; }
slurm_ends()    # pid file
{
	local pid
	pid=$(slurm_pid "$1")
	[ "$pid" ] || return 0
	kill "$pid" 2>/dev/null || return 0
	await slurm_is_gone "$pid" || kill -9 "$pid" 2>/dev/null
}
slurm_preempts()        # node
{
	slurm_is_real || { preempt "$1"; return; }
	sbatch -p high -w "$1" --exclusive -o /dev/null --wrap 'sleep 600' >/dev/null
}
# It refuses to run as root, and knows root by a token of the controller.
slurm_rest_begins()
{
	local token
	slurm_has_rest && token=$(scontrol token lifespan=3600 2>/dev/null) || return
	mkdir -p "$slurm_at/rest"
	chown munge "$slurm_at/rest"
	SLURM_JWT=daemon runuser -u munge -- slurmrestd -v -s openapi/v0.0.38 -a rest_auth/jwt \
		-f "$SLURM_CONF" "unix:$slurm_at/rest/socket" >"$slurm_at/log/slurmrestd.log" 2>&1 &
	slurm_rest_pid=$!
	await test -S "$slurm_at/rest/socket" || return
	rest=("SLURMRESTD=$slurm_at/rest/socket" "${token?}")
}
slurm_rest_ends()
{
	[ "${slurm_rest_pid:-}" ] || return 0
	kill $(pgrep -P "$slurm_rest_pid") "$slurm_rest_pid" 2>/dev/null
	wait "$slurm_rest_pid" 2>/dev/null
	slurm_rest_pid=
	rm -f "$slurm_at/rest/socket"
}
slurm_controller_ends() { slurm_ends run/slurmctld.pid; }
slurm_node_ends() { slurm_ends "run/slurmd.$1.pid"; }
slurm_end()
{
	local node pid
	for pid in $(cat "$work"/slurm/jobs/*/pid 2>/dev/null); do kill "$pid" 2>/dev/null; done
	slurm_rest_ends
	[ "${slurm_at:-}" ] || return 0
	scancel --state=PENDING -u root 2>/dev/null
	scancel -u root 2>/dev/null
	for node in "${slurm_nodes[@]}"; do slurm_node_ends "$node"; done
	slurm_controller_ends
	slurm_ends mrun/munged.pid
	slurm_at=
}
