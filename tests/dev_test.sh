#!/bin/bash
# ./dev on machines that lack something: it says what, changes nothing, and exits 2; a
# missing program is a failure and not an empty success.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/src/cmd" "$work/tools"
cp "$source/dev" "$work/dev"
cp "$source"/tools/packages "$source"/tools/*.sh "$work/tools/"
touch "$work/src/cmd/main.c"

stub() { printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }

expect()        # exit status, text that must be printed, arguments of ./dev
{
	local want=$1 text=$2
	shift 2
	if PATH=$work/bin:$PATH "$work/dev" "$@" >"$work/out" 2>&1; then status=0; else status=$?; fi
	[ $status -eq "$want" ] && grep -qF -- "$text" "$work/out" && return
	echo "./dev $*: expected exit $want and '$text', got exit $status and:"
	cat "$work/out"
	exit 1
}

expect 0 'usage: ./dev VERB'
expect 2 "no verb 'bulid'" bulid
expect 2 '  ./dev build ' bulid
expect 2 "no preset 'fast'" test --preset fast
expect 2 'build takes one room' build base graph

stub dpkg-query 'echo not-installed'
stub id 'echo 1000'
stub sudo 'exit 1'
stub apt-get 'echo called >&2; exit 1'
expect 2 'apt-get update && apt-get install -y --no-install-recommends' build
expect 2 'cmake                    configures the build' build
if grep -q called "$work/out"; then echo 'apt-get must not be called without root'; exit 1; fi

stub id 'echo 0'
expect 2 './dev: apt-get could not install:' build

stub dpkg-query 'echo installed'
stub cmake 'exit 0'
expect 1 'the program under test is missing: build/release/heddle' test
expect 1 '0 passed, 1 failed, 0 skipped' test
echo "what is missing is said, nothing is done in silence"
