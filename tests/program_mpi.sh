#!/bin/bash
# Workers that a real mpirun starts: they join by what Open MPI says to its ranks, and by PMIx alone; what
# comes has the bits of one device.
. "$(dirname "$0")/program.sh"
command -v mpirun >/dev/null || { echo "skip: no mpirun (openmpi-bin)"; exit 77; }
. "$SOURCE_DIR/tests/remote.sh"

ranks()         # how many, before the program...; what they say comes when mpirun has passed it on
{
	local n=$1
	shift
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none \
		-np "$n" "$@" "$HEDDLE_BIN" worker --join mpi --devices 1 >>mpi.log 2>&1 &
}

"${paced[@]}" "$HEDDLE_BIN" run long.yaml --out mpi --workers 1 --devices 1 -q 2>log.mpi &
run=$!
has_members mpi 1
ranks 2
expect 0 heddle scale mpi 3 --wait
has_members mpi 3
await grep -q 'task [01] of 2 of Open MPI job' mpi.log ||
	failed "ranks of Open MPI are not seen: $(cat mpi.log)"
ranks 1 env -u OMPI_COMM_WORLD_RANK
expect 0 heddle scale mpi 4 --wait
has_members mpi 4
await grep -q 'task 0.* of PMIx job' mpi.log || failed "a rank of PMIx is not seen: $(cat mpi.log)"
reach mpi $(($(step mpi) + 10))
ends_well mpi "ranks of mpirun"
passed "ranks of mpirun join, and the bits are those of one device"
