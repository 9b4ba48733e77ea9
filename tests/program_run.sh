#!/bin/bash
# heddle run: what it leaves, what it prints, what its options do.
. "$(dirname "$0")/program.sh"
write_jobs 6

expect 0 heddle run mlp.yaml
says 'step 6/6'
says 'state    '
for name in job.yaml job.resolved.json metrics.ndjson events.ndjson ckpt plan lock report.html \
	ckpt/step-000000006; do
	[ -e runs/mlp/$name ] || failed "runs/mlp has no $name"
done
cmp -s mlp.yaml runs/mlp/job.yaml || failed "job.yaml is not as given"
! grep -v '"bytes_out":0,' runs/mlp/metrics.ndjson || failed "a run in one process sent something"
[ "$(wc -l <runs/mlp/metrics.ndjson)" -eq 6 ] || failed "a line of metrics for each step"
grep -q '"kind":"job_end"' runs/mlp/events.ndjson || failed "no job_end"
[ "$(stat -c %a runs/mlp)" = 700 ] || failed "the run directory is open to others"
passed "a run leaves job, metrics, events, plan, checkpoints and report"

expect 0 heddle run mlp.yaml -q
[ ! -s err ] || failed "--quiet talks"
[ -d runs/mlp-2 ] || failed "a taken name gets -2"
passed "a taken name gets -2, and --quiet is quiet"

expect 0 heddle run mlp.yaml --steps 4 --out short --json -q
same "$(number step)" 4 "--steps"
expect 0 heddle run mlp.yaml -v --out loud
[ "$(grep -c '^step ' err)" -eq 6 ] || failed "-v prints each step"
expect 0 heddle run mlp.yaml --events -q --out evented
grep -q '"kind":"checkpoint_done"' out || failed "--events prints events"
passed "--steps, --out, --json, -v, --events"

rm -rf elsewhere
mkdir elsewhere
expect 0 heddle run mlp.yaml -C elsewhere -q
[ -d elsewhere/runs/mlp ] || failed "-C DIR"
before=$(ls runs)
expect 0 heddle run mlp.yaml --dry-run
says 'nothing was started'
expect 0 heddle run mlp.yaml --show-config
says '"origin":"default"'
same "$(ls runs)" "$before" "--dry-run and --show-config start nothing"
passed "-C, --dry-run, --show-config"

expect 0 heddle run --new fresh.yaml
expect 0 heddle config check fresh.yaml
expect 2 heddle run --new fresh.yaml
says 'is there already'
expect 2 heddle run
says 'takes a job file'
passed "--new writes a job file that is good, once"

before=$(ls runs)
expect 2 heddle run mlp.yaml --steps 0
says '--steps is at least 1'
expect 2 heddle resume runs/mlp --steps 0
says '--steps is at least 1'
same "$(ls runs)" "$before" "--steps 0 starts nothing"
passed "--steps 0 is refused"

# what a terminal gets: a rewritten line only where colours are allowed
on_terminal() { script -qec "$HEDDLE_BIN run mlp.yaml --steps 2 ${1-}" /dev/null >screen </dev/null; }
rewritten() { grep -q "$(printf '\033')\\[K" screen; }
if command -v script >/dev/null; then
	NO_COLOR= TERM=xterm on_terminal
	rewritten || failed "a terminal is not rewritten"
	NO_COLOR=1 TERM=xterm on_terminal
	! rewritten || failed "rewriting under NO_COLOR"
	NO_COLOR= TERM=dumb on_terminal
	! rewritten || failed "rewriting a dumb terminal"
	NO_COLOR= TERM=xterm on_terminal '--color never'
	! rewritten || failed "rewriting under --color never"
	passed "lines are rewritten on a terminal with colours, and nowhere else"
else
	echo "skip: what a terminal gets (needs script)"
fi

expect 0 heddle help run
cp out first
expect 0 heddle run --help
same "$(cat out)" "$(cat first)" "help run and run --help"
expect 0 heddle help ckpt ls
says 'usage: heddle ckpt ls'
expect 2 heddle help rnu
says 'did you mean "run"'
passed "help of one verb"

quoted='a "quoted" \ name'
expect 0 heddle run mlp.yaml --json -q --out "$quoted"
json_ok
expect 0 heddle resume "$quoted" --json -q
json_ok
same "$(number loss_first)$(number loss_last)" nullnull "losses of a resume without a step"
expect 0 heddle run mlp.yaml -q --events --out evented-too
json_ok
expect 4 heddle run mlp.yaml --json -q --out diverged -s optim.lr=1e6 -s optim.kind=sgd -s optim.clip=0 \
	-s optim.weight_decay=0 -s model.loss=mse -s job.steps=200
json_ok
for verb in "ckpt ls" "ckpt show" "ckpt verify" "ckpt digest" eval; do
	expect 0 heddle $verb "$quoted" --json
	json_ok
done
cp "$quoted/metrics.ndjson" out && json_ok
cp "$quoted/events.ndjson" out && json_ok
! grep -E '"(t|loss|accuracy)":-?[0-9.]*[0-9]{10}' out || failed "more digits than are known"
for verb in "config check" "config show" "data show" "data order" "data cat" "model show" "bench step"; do
	expect 0 heddle $verb mlp.yaml --json
	json_ok
done
for verb in doctor version "model ls" "config schema"; do
	expect 0 heddle $verb --json
	json_ok
done
passed "whatever a name or a loss is, --json is JSON"

expect 0 heddle run mlp.yaml --devices 2 --steps 4 --out four
says 'step 4/6'
says '(13 vn: 7/6)'
sed 's/^map .*/map 0-8:0 9-12:1/' four/plan/0000.plan | awk '/^[01]: /{ next } { print }
	END {
		for (r = 0; r < 2; r++) {
			printf "%d:", r
			for (v = r ? 9 : 0; v < (r ? 13 : 9); v++)
				printf " LD%d.%d F%d.%d B%d.%d", 0, v, 0, v, 0, v
			print " RED0 NORM STEP0"
		}
	}' |
	sed 's/LD0\./LD0./g' >uneven.plan
expect 0 heddle run mlp.yaml --devices 2 --plan uneven.plan --out uneven
says '(13 vn: 9/4)'
for kind in reference null; do
	expect 0 heddle run mlp.yaml --devices $kind:2 --steps 2 --out $kind
	says "kernels: those of the $kind device"
done
passed "the step line shows the last step and the adopted plan; each kind of device has its own kernels"

# What a plan lacks by itself is refused by both verbs with one reason, the first that is found.
while IFS='|' read -r from to reason; do
	sed "s/$from/$to/" uneven.plan >wrong.plan
	expect 2 heddle plan check wrong.plan
	says "$reason"
	sed -n 's/^heddle: //p' err >by-check
	expect 2 heddle run mlp.yaml --devices 2 --plan wrong.plan --out wrong
	sed -n 's/^heddle: //p' err >by-run
	cmp by-check by-run || failed "plan check and run refuse $to for different reasons"
	[ ! -e wrong ] || failed "a run that was refused left a folder"
done <<'END'
RED0 NORM STEP0|RED0 STEP0|no NORM precedes it: NORM seals the step and makes the scale of its update
RED0 NORM STEP0|RED0 STEP0 NORM|no NORM precedes it
RED0 NORM STEP0|NORM RED0 STEP0|NORM happens before the reduction of stage 0
RED0 NORM STEP0|NORM STEP0|NORM happens before the reduction of stage 0
RED0 NORM STEP0|RED0 RED0 NORM STEP0|stage 0 is reduced twice
RED0 NORM STEP0|RED0 TIE0 NORM STEP0|TIE has no runtime in this build
RED0 NORM STEP0|RED0 NORM|update 1 of stage 0 never happens
B0.12 RED0 NORM STEP0|B0.12 NORM RED0 STEP0|NORM happens before the reduction of stage 0
^0: |0: LD0.12 |virtual node 12 lives on rank 1, not here
^stages 1|stages 2|it has 2 stages, a run has 1
END
expect 0 heddle plan check uneven.plan
passed "plan check and run refuse a plan for the same reason"

expect 0 heddle run mlp.yaml --devices 2 -s parallel.mode=explicit -s parallel.plan=uneven.plan --out by-key
says '(13 vn: 9/4)'
expect 2 heddle run mlp.yaml -s parallel.planner=ptdp --out piped
says 'parallel.planner: ptdp can be planned and not yet run: `heddle plan mlp.yaml` predicts it'
[ ! -e piped ] || failed "a run that was refused left a folder"
expect 2 heddle bench step mlp.yaml -s parallel.planner=ptdp
says 'to train now, leave it out'
passed "a plan may be the job's; what can only be planned is refused by its key"
