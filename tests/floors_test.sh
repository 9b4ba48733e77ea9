#!/bin/bash
# One violation of each kind turns the floor check red, and nothing else does.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tools" "$work/tests"
cp "$source/tools/floors" "$work/tools/"

check() { (cd "$work" && "$source/tools/floors.sh" . 2>&1); }

expect()        # FILE, LINE, text of the complaint ("" when it is legal)
{
	rm -rf "$work/src"
	mkdir -p "$work/$(dirname "$1")"
	echo "$2" >"$work/$1"
	if output=$(check); then status=0; else status=1; fi
	rm -f "$work/$1"
	if [ -z "$3" ] && [ $status -eq 0 ]; then return; fi
	if [ -n "$3" ] && [ $status -eq 1 ] && [[ $output == "$1:1: "*"$3"* ]]; then return; fi
	echo "$1 with $2: expected '${3:-no complaint}', exit $status, got: $output"
	exit 1
}

expect src/engine/a.c      '#include "plan/ins.h"'        ''
expect src/engine/a.c      '#include "engine/fold.h"'       ''
expect src/sys/a.c       '#include "trace/event.h"'     ''
expect src/base/json.c   '#include <jansson.h>'         ''
expect src/base/json/a.c '#include <jansson.h>'         ''
expect src/base/json.c   '#include <pthread.h>'         ''
expect src/sys/file.c    '#include <unistd.h>'          ''
expect src/engine/a_test.c '#include "tests/check.h"'     ''
expect src/engine/a_test.c '#include <unistd.h>'          ''
expect src/engine/testing.h '#include "tests/check.h"'    ''
expect src/engine/a_test.c '#include "engine/testing.h"'    ''
expect src/engine/testing.h '#include "graph/testing.h"'  ''
expect fuzz/graph_fuzz.c '#include "graph/testing.h"'   ''

expect src/graph/a.c     '#include "engine/fold.h"'       'lies above room graph'
expect src/trace/a.c     '#include "sys/clock.h"'       'lies above room trace'
expect src/engine/a.c      '#  include "device/cpu/gemm.h"' 'is private to room device'
expect tests/a.c         '#include "device/cpu/gemm.h"' 'is private to room device'
expect src/engine/a.c      '#include "../plan/ins.h"'     'climbs'
expect src/engine/a.c      '#include "utils/misc.h"'      'room utils stands on no floor'
expect src/utils/a.c     'int utils;'                   'room utils stands on no floor'
expect src/engine/a.c      '#include <jansson.h>'         'may be included by base/json alone'
expect src/base/yaml.c   '#include <jansson.h>'         'may be included by base/json alone'
expect src/base/a.c      '#include <glib.h>'            'is in no row'
expect src/base/yaml.c   '#include <pthread.h>'         'is for room sys alone'
expect src/engine/a.c      '#include <sys/socket.h>'      'is for room sys alone'
expect src/plan/a.c      '#include "sys/clock.h"'       'room plan is pure, room sys is not'
expect src/plan/a_test.c '#include "wire/frame.h"'   'room plan is pure, room wire is not'
expect src/clustersim/gen/a.c '#include "sys/clock.h"'  'is denied to clustersim/gen'
expect src/clustersim/schedsim/a.c '#include "plan/plan.h"' 'is denied to clustersim/schedsim'
expect src/engine/a.c      '#include "tests/check.h"'     'belongs to tests'
expect src/engine/a.c      '#include "engine/testing.h"'    'is for tests'
expect src/engine/a.h      '#include "graph/testing.h"'   'is for tests'
expect src/graph/testing.h '#include "engine/fold.h"'     'lies above room graph'

# a struct tag is defined once; a test may have its own
mkdir -p "$work/src/plan" "$work/src/engine"
tags()          # FILE, text of the complaint, the second definition
{
	echo 'struct walk { int at; };' >"$work/src/plan/a.c"
	echo "$3" >"$work/$1"
	if output=$(check); then status=0; else status=1; fi
	rm -f "$work/$1" "$work/src/plan/a.c"
	[ $status -eq $([ -z "$2" ] && echo 0 || echo 1) ] && [[ $output == *"$2"* ]] && return
	echo "a second struct in $1: expected '${2:-no complaint}', exit $status, got: $output"
	exit 1
}
tags src/plan/b.c       'src/plan/b.c:1: struct walk is defined in src/plan/a.c' 'static const struct walk {'
tags src/plan/b.h       'struct walk is defined in src/plan/a.c, too' 'struct walk {'
tags src/plan/b_test.c  '' 'struct walk {'
tags src/plan/testing.h '' 'struct walk {'
tags src/plan/b.c       '' 'struct walk *walk;'
tags src/plan/b.c       '' 'struct walked {'

# a function that is not static is defined once, whatever other files declare or keep to themselves
mkdir -p "$work/src/worker"
functions()     # FILE, text of the complaint, the second one
{
	printf 'int hd_walk(\n\tint at)\n{\n\treturn at;\n}\n' >"$work/src/plan/a.c"
	printf "$3\n" >"$work/$1"
	if output=$(check); then status=0; else status=1; fi
	rm -f "$work/$1" "$work/src/plan/a.c"
	[ $status -eq $([ -z "$2" ] && echo 0 || echo 1) ] && [[ $output == *"$2"* ]] && return
	echo "a second function in $1: expected '${2:-no complaint}', exit $status, got: $output"
	exit 1
}
twice='function hd_walk is defined in src/plan/a.c, too'
functions src/plan/b.c        "src/plan/b.c:2: $twice" 'int hd_walk(int at)\n{\n}'
functions src/worker/b.c      "$twice" 'struct walk *hd_walk(int at) { return 0; }'
functions src/plan/b.c        '' 'int hd_walk(int at);\nint hd_other(void)\n{\n}'
functions src/plan/b.c        '' 'static int hd_walk(int at)\n{\n}'
functions src/plan/b_test.c   '' 'int hd_walk(int at)\n{\n}'
functions src/plan/b_none.c   '' 'int hd_walk(int at)\n{\n}'

# a number of a message or an event, a name of a failpoint
mkdir -p "$work/src/protocol" "$work/src/trace" "$work/src/sys"
rows()          # FILE, text of the complaint, the second row
{
	printf '\tX(ONE, 7, one) \\\n\tX(TWO, "two", ANY) \\\n\t%s\n' "$3" >"$work/$1"
	if output=$(check); then status=0; else status=1; fi
	rm -f "$work/$1"
	[ $status -eq $([ -z "$2" ] && echo 0 || echo 1) ] && [[ $output == *"$2"* ]] && return
	echo "a row in $1: expected '${2:-no complaint}', exit $status, got: $output"
	exit 1
}
rows src/protocol/message.h 'src/protocol/message.h:3: 7 is in row ONE, too' 'X(THREE,  7, three)'
rows src/trace/event.h      '7 is in row ONE, too'     'X(THREE, 7, "three")'
rows src/sys/failpoint.h    '"two" is in row TWO, too' 'X(THREE, "two", ANY)'
rows src/sys/failpoint.h    ''                         'X(THREE, "three", ANY)'
rows src/plan/a.h           ''                         'X(THREE, 7, three)'

# a folder that a row opens, to the rooms it names and to no other
echo 'open device/cpu engine' >>"$work/tools/floors"
expect src/engine/a.c      '#include "device/cpu/gemm.h"' ''
expect src/worker/a.c    '#include "device/cpu/gemm.h"' 'is private to room device'
expect src/engine/a.c      '#include "device/null/a.h"'   'is private to room device'
echo "every kind of violation is named, legal includes pass"
