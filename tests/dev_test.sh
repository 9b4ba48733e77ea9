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

# a counted slice of fuzzing is a number of inputs, from an empty folder and an environment of one size
mkdir -p "$work/build/asan" "$work/build/fuzz/counted/x"
touch "$work/build/fuzz/counted/x/learned"
cat >"$work/build/asan/x_fuzz" <<'END'
#!/bin/bash
learned=build/fuzz/counted/x
echo "$*"
echo "stat::number_of_executed_units: 7"
set -e
[[ " $* " == *" -seed=1 -runs=7 -use_cmp=0 -reload=0 -max_total_time=30 "*" $learned "* ]]
[ -z "${BALLAST:-}" ]
[ -z "$(ls "$learned")" ]
END
chmod +x "$work/build/asan/x_fuzz"
export BALLAST=of-this-machine
HD_FUZZ_INPUTS=7 expect 0 'x: 7 inputs in at most 30 s, no finding' fuzz --seconds 30
expect 1 'x: a finding' fuzz --seconds 30
echo "what is missing is said, nothing is done in silence, what is counted is no time"
