#!/bin/bash
# A slice of the long suite of runs that are disturbed and judged from outside (./dev trial): one run of each
# kind.
. "$(dirname "$0")/program.sh"
HD_TRIAL_STEPS=300 HD_TRIAL_STILL=200 "$SOURCE_DIR/tools/trial.sh" "$HEDDLE_BIN" 12 "${HD_TRIAL_SEED:-0}" \
	"$work/trial" >out 2>err || {
	cat out
	failed "runs from outside"
}
grep '^skip:' out
says ' runs, 0 failed'
passed "$(grep -c ': *ok$' out) disturbed runs with the bits of one device"
