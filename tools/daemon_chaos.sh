#!/bin/bash
# Kills the scheduler of a cluster again and again while its jobs run, and compares every job's end with its undisturbed run.
#
#	tools/daemon_chaos.sh [KILLS [SEED]]       1,000 deaths, seed 1
#
# The same as tests/program_cluster.sh, for as long as one likes; HEDDLE_BIN names the program.
set -eu
cd "$(dirname "$0")/.."
HD_CLUSTER_KILLS=${1:-1000} HD_CLUSTER_SEED=${2:-1} exec bash tests/program_cluster.sh
