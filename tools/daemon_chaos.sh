#!/bin/bash
# Kills the scheduler of a cluster again and again, at random instants and at its failpoints, and compares
# every job's end with its undisturbed run; says how many deaths there were at which place.
#
#	tools/daemon_chaos.sh [KILLS [SEED]]       1,000 deaths, seed 1
#	tools/daemon_chaos.sh users [KILLS [SEED [POLICY]]]     of a scheduler of several users, with quotas,
#		windows, arrays, dependencies and sweeps (fifo); as root
#
# The same as tests/program_serve_kills.sh and tests/program_operators.sh, for as long as one likes;
# HEDDLE_BIN names the program.

set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = users ]; then
	HD_OPERATORS_KILLS=${2:-1000} HD_OPERATORS_SEED=${3:-1} HD_OPERATORS_POLICY=${4:-fifo} \
		exec bash tests/program_operators.sh
fi
HD_SERVE_KILLS=${1:-1000} HD_SERVE_SEED=${2:-1} exec bash tests/program_serve_kills.sh
