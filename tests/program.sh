# program.sh -- what the whole-program tests share; sourced by tests/program_*.sh.
#
#	expect 3 heddle run bad.yaml     runs it; the exit code must be 3; stdout in out, stderr in err
#	says 'text'                      one of the two holds the text
#
# An exit code of 0 is not believed alone: a command that gives a verdict must have printed it, and a file or
# folder that it was to make must be there (verdicts, made).
#
#	passed "what was shown"
#	await test -e file               waits for an event, with a limit that no machine is too slow for
#	reach RUN 30                     waits until a run that goes on has committed that step
#
# The test runs in a folder of its own that goes with it; the first failure ends it.
# Without a program the test is skipped (exit 77).
set -u
SOURCE_DIR=${SOURCE_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
HEDDLE_BIN=${HEDDLE_BIN:-$SOURCE_DIR/build/release/heddle}
[ -x "$HEDDLE_BIN" ] || { echo "skip: no program at $HEDDLE_BIN"; exit 77; }
work=$(mktemp -d)
# what a test has stopped (SIGSTOP) goes on, and ends
end_jobs() { kill $(jobs -p) ${watch:-} 2>/dev/null; kill -CONT $(jobs -p) 2>/dev/null; wait; }
trap 'end_jobs; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset HD_FAIL
export NO_COLOR=1

heddle() { "$HEDDLE_BIN" "$@"; }

# A script with the line `needs_failpoints` is no test of a build without them (cmake/tests.cmake); a part of
# one asks has_failpoints and is left out there.
has_failpoints() { HD_FAIL=step.begin:delay=0 "$HEDDLE_BIN" version >/dev/null 2>&1; }
needs_failpoints() { has_failpoints || { echo "skip: this build has no failpoints"; exit 77; }; }

# What stands still for ever is cut by whoever runs the tests; a little before, it says where it stands. The
# watch ends with the test.
stands_still()
{
	local events
	for _ in {1..220}; do
		read -r -t 5 <> <(:)
		kill -0 $$ 2>/dev/null || return
	done
	echo "FAILED: goes on for 1100 s"
	for events in */events.ndjson; do
		[ -e "$events" ] || continue
		echo "== $events"
		tail -n 6 "$events" | cut -c 1-250
		timeout 10 "$HEDDLE_BIN" status "${events%/*}" 2>&1
	done
	pgrep -a -f "$(basename "$HEDDLE_BIN")[: ]" | cut -c 1-200
}
stands_still &
watch=$!
disown

# Of the two runs of this test that wrote last: how many events of each kind, those that say which worker went
# and what was read, the last ones, and the ends of the processes' logs.
saw()
{
	local events log
	for events in $(ls -t ./*/events.ndjson ./*/*/events.ndjson 2>/dev/null | head -n 2); do
		echo "== $events: $(grep -o '"kind":"[a-z_]*"' "$events" | cut -d '"' -f 4 | sort | uniq -c |
			awk '{ printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }')"
		grep -E '"kind":"(lost|process_ended|given_up|restore|failing|corrupt|afresh)"' "$events" |
			tail -n 8 | cut -c 1-200
		tail -n 3 "$events" | cut -c 1-200
		for log in $(ls -t "${events%/*}"/log/*.log 2>/dev/null | head -n 5); do
			tail -n 2 "$log" | cut -c 1-200 | sed "s|^|${log##*/}: |"
		done
	done
}

# The folder of a test that failed stays in the folder of the build, until it fails again.
keep()
{
	local at=${BUILD_DIR:+$BUILD_DIR/failed/$(basename "$0" .sh)}
	[ "$at" ] && [ "$(du -sm "$work" | cut -f 1)" -lt 200 ] || return 0
	rm -rf "$at"
	mkdir -p "${at%/*}" && cp -a "$work" "$at" 2>/dev/null
	echo "its files are in $at"
}

failed()
{
	echo "FAILED: $*"
	saw
	tail -n 15 out err 2>/dev/null
	keep
	exit 1
}

# VERB|what an exit code of 0 goes with, one pattern
verdicts='ckpt diff|^(IDENTICAL|NEAR ENOUGH): |"accepted":true
ckpt digest|^[0-9a-f]{32}|"digest"
ckpt verify|^ok  |"ok":true
config check|: ok  job |"ok":true
data verify|^ok: |"ok":true
plan check|^accepted |"accepted":true|instructions in
scale| workers asked for, | devices? a pipeline, |"(target|devices)":
plan draw|..
plan show|..
plan partition|..
plan auto|..
sched solve|..
sched simulate|..'

verdict()       # heddle VERB...: in out and err
{
	local verb pattern
	while IFS='|' read -r verb pattern; do
		[[ "$* " == "heddle $verb "* ]] || continue
		[[ " $* " =~ " "(-q|-o|--quiet|--help)" " ]] || grep -qE -- "$pattern" out err ||
			failed "exit 0 without a verdict: $*"
	done <<<"$verdicts"
}

# NAME KIND FORWARD BACKWARD OUTPUT PARAMETERS: a node of a published profile
profile_node()
{
	echo "$1 -- $2 -- forward_compute_time=$3, backward_compute_time=$4, activation_size=$5," \
		"parameter_size=$6"
}

# heddle VERB...: what -o and the like name is there and not empty; a run has a record of what happened
made()
{
	local before= word
	for word in "$@"; do
		case $before in
		-o|--out|--safetensors|--onnx) [ "$word" = - ] || [ -s "$word" ] ||
			failed "exit 0 without $word: $*" ;;
		esac
		before=$word
	done
	[ "$2" != resume ] || [ ! -d "${3:-}" ] || [ -s "$3/events.ndjson" ] ||
		failed "exit 0 without events: $*"
}

expect()
{
	local want=$1 status=0
	shift
	"$@" >out 2>err || status=$?
	[ $status -eq "$want" ] || failed "expected exit $want, got $status: $*"
	[ $status -ne 0 ] || [ "$1" != heddle ] || { verdict "$@"; made "$@"; }
}

# PATH: where published material lies, in HEDDLE_SHARED or the extract in tests; what is compressed there is
# unpacked here
material()
{
	local at
	for at in "${HEDDLE_SHARED:+$HEDDLE_SHARED/$1}" "$SOURCE_DIR/tests/$1"; do
		[ -z "$at" ] || [ ! -e "$at" ] || { echo "$at"; return; }
	done
	[ -e "$SOURCE_DIR/tests/$1.gz" ] || return 1
	at=$work/${1##*/}
	[ -e "$at" ] || gzip -dc "$SOURCE_DIR/tests/$1.gz" >"$at"
	echo "$at"
}

says() { grep -qF -- "$1" out err || failed "not said: $1"; }
passed() { echo "ok - $*"; }
same() { [ "$1" = "$2" ] && [ -n "$1" ] || failed "$3: '$1' and '$2' differ"; }
# the first such member of the JSON in out
number() { grep -o "\"$1\":\"\{0,1\}[^,}\"]*" out | head -n 1 | sed 's/^"[^"]*":"\{0,1\}//'; }

# Until a command succeeds, however slow the machine is: ten minutes are no time at all for what never comes.
# What is waited for needs the processors, too: whoever asks often takes them from it.
await()
{
	local end=$((SECONDS + 600)) wait
	for wait in 0.02 0.03 0.05 0.08 0.1 0.12 0.15; do
		"$@" && return 0
		sleep $wait
	done
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "waited ten minutes for: $*"; return 1; }
		sleep 0.2
	done
}
not() { ! "$@"; }

# A run that goes on in the background.
answers_now()
{
	heddle status "$1" --json 2>/dev/null |
		grep -qE '"state":"(starting|running|evaluating|waiting|stopping)"'
}
step() { heddle status "$1" --json 2>/dev/null | grep -o '"step":[0-9]*' | head -n 1 | cut -d: -f2; }
is_at() { local at; at=$(step "$1") && [ "${at:--1}" -ge "$2" ]; }
reach() { await is_at "$1" "$2" || failed "$1 did not reach step $2"; }

# RUN [N]: each plan that the records name (N of them at least) lies in the run's folder, may run, and is of
# as many workers; numbers never come back.
plans_of()
{
	local records=$1/metrics.ndjson number workers file
	grep -o '"plan":[0-9]*' "$records" | sort -c -t: -k2n 2>/dev/null ||
		failed "plan numbers of $1 go back"
	grep -o '"workers":[0-9]*,"membership":[0-9]*,"plan":[0-9]*' "$records" | tr -dc '0-9,\n' |
		sort -u >named
	[ "$(cut -d, -f3 named | sort -u | wc -l)" -ge "${2:-1}" ] ||
		failed "$1 names only the plans $(cut -d, -f3 named | sort -u | paste -sd' ')"
	while IFS=, read -r workers _ number; do
		printf -v file '%s/plan/%04d.plan' "$1" "$number"
		expect 0 heddle plan check "$file"
		expect 0 heddle plan show "$file"
		same "$(sed -n 's/^workers //p' "$file" | tr ' ' '\n' | cut -d: -f2 | sort -u | wc -l)" \
			"$workers" "workers of $file"
	done <named
}

# RUN JOB WHAT [OPTION...]: of a run that has ended; one device, with those options, comes to the same state
# and digest log in as many $steps.
has_bits_of_one()
{
	local digest
	expect 0 heddle ckpt digest "$1"
	digest=$(cat out)
	steps=$((10#$(ls "$1/ckpt" | tail -n 1 | cut -d- -f2)))
	expect 0 heddle run "$2" --out "$1-one" --devices 1 --json -q "${@:4}" -s "job.steps=$steps"
	same "$(number digest)" "$digest" "$3"
	expect 0 heddle ckpt diff "$1" "$1-one"
}

# The same of a run that goes on as process $run: it is stopped wherever it is. So a test whose newcomers take
# long has no end to miss.
stops_with_bits_of_one()
{
	local status=0
	expect 0 heddle stop "$1"
	wait $run || status=$?
	[ $status -eq 75 ] || failed "$1: expected exit 75, got $status"
	has_bits_of_one "$@"
}

# Tiny jobs on made-up data; $1 steps.
write_jobs()
{
	cat >mlp.yaml <<END
job: {name: mlp, seed: 3, steps: $1}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-2, ema: {decay: 0.9}, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >lenet.yaml <<END
job: {name: lenet, seed: 4, steps: $1}
model: {use: "builtin:lenet", args: {height: 16, width: 16, classes: 3}}
data: {kind: synthetic, count: 50}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: momentum, lr: 1e-2, schedule: {kind: cosine, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >resnet18.yaml <<END
job: {name: resnet18, seed: 6, steps: $1}
model: {use: "builtin:resnet18", args: {stem: small, channels: 1, height: 8, width: 8, base: 2, classes: 4}}
data: {kind: synthetic, count: 50}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: nesterov, lr: 1e-2, weight_decay: 5e-4, schedule: {kind: cosine, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >inception.yaml <<END
job: {name: inception, seed: 6, steps: $1}
model:
  use: "builtin:inception"
  args: {stem: cifar, channels: 1, height: 6, width: 6, base: 8, blocks: [1], classes: 4}
data: {kind: synthetic, count: 50}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: nesterov, lr: 1e-2, weight_decay: 5e-4, schedule: {kind: cosine, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >gpt.yaml <<END
job: {name: gpt, seed: 5, steps: $1}
model: {use: "builtin:gpt", args: {layers: 1, width: 16, heads: 2, context: 8, vocab: 32, dropout: 0.1}}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim:
  kind: adam
  lr: 1e-2
  schedule: {kind: linear, warmup: 2}
  groups: [{params: ["*.bias", "ln_*"], lr_scale: 0.5}, {params: ["h.*"], decay: 0.1}]
checkpoint: {every: 1 steps, keep: 2}
END
	cat >llama.yaml <<END
job: {name: llama, seed: 6, steps: $1}
model: {use: "builtin:llama", args: {layers: 1, width: 16, heads: 4, kv_heads: 2, context: 8, vocab: 32}}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >bert.yaml <<END
job: {name: bert, seed: 8, steps: $1}
model:
  use: "builtin:bert"
  args: {layers: 1, width: 16, heads: 4, context: 8, vocab: 33, share: 0.3, pad: 3, dropout: 0.1}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >bert_cls.yaml <<END
job: {name: bert_cls, seed: 8, steps: $1}
model:
  use: "builtin:bert"
  args: {layers: 1, width: 16, heads: 4, context: 8, vocab: 33, pad: 3, dropout: 0.1, head: cls, classes: 3}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
	cat >lstm.yaml <<END
job: {name: lstm, seed: 7, steps: $1}
model: {use: "builtin:lstm", args: {layers: 2, width: 6, hidden: 9, context: 8, vocab: 32, dropout: 0.1}}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
END
}

# Trains with --json and leaves the state digest in $digest.
train()
{
	expect 0 heddle "$@" --json -q
	digest=$(number digest)
	[ ${#digest} -eq 32 ] || failed "no digest: $*"
}

# What lies in out is JSON, one object a line.
json_ok()
{
	local python
	python=$(command -v python3) || python=/opt/torchvenv/bin/python
	[ -x "$python" ] || return 0
	[ -s out ] || failed "no JSON"
	"$python" -c 'import json, sys
def refuse(word): raise ValueError(word + " is not JSON")
for line in sys.stdin: json.loads(line, parse_constant=refuse)' <out || failed "not JSON"
}
