#!/bin/bash
# A scheduler of several users that dies again and again, under everything that users, an operator and a
# sweep ask of it: tests/operators_kills.py says what, and what must hold.
#
# HD_OPERATORS_KILLS (4): deaths; HD_OPERATORS_SEED (1); HD_OPERATORS_POLICY (fifo). tools/daemon_chaos.sh
# users asks for many.
. "$(dirname "$0")/program.sh"
[ "$(id -u)" = 0 ] || { echo "skip: not root: no request can be another account's"; exit 77; }
command -v python3 >/dev/null || { echo "skip: no python3 to play the users"; exit 77; }
needs_failpoints
points=$(sed -n 's/^\tX([A-Z_]*, *"\([a-z.]*\)", *[a-z]*, *SCHEDULER,.*/\1/p' \
	"$SOURCE_DIR/src/sys/failpoint.h" | paste -sd,)
[ "$(tr -cd , <<<"$points" | wc -c)" -ge 9 ] || failed "the names of failpoint.h were not found"
chmod 711 "$work"
mkdir k
kills=${HD_OPERATORS_KILLS:-4}
python3 "$SOURCE_DIR/tests/operators_kills.py" "$HEDDLE_BIN" "$work/k" --kills "$kills" \
	--seed "${HD_OPERATORS_SEED:-1}" --policy "${HD_OPERATORS_POLICY:-fifo}" --points "$points" \
	>out 2>err ||
	failed "$(tail -n 3 out err; tail -n 5 k/serve.err)"
cat out
passed "users, quotas, windows, arrays and sweeps: $kills deaths of their scheduler"
