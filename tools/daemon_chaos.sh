#!/bin/bash
# Kills the scheduler of a cluster again and again, at random instants and at its failpoints, and compares
# every job's end with its undisturbed run; says how many deaths there were at which place.
#
#	tools/daemon_chaos.sh [KILLS [SEED]]       1,000 deaths, seed 1
#
# The same as tests/program_serve_kills.sh, for as long as one likes; HEDDLE_BIN names the program.
# tests/program_cluster.sh kills one whose jobs are preempted and moved (HD_CLUSTER_KILLS).
set -eu
cd "$(dirname "$0")/.."
HD_SERVE_KILLS=${1:-1000} HD_SERVE_SEED=${2:-1} exec bash tests/program_serve_kills.sh
