#!/bin/bash
# The layout check names each broken rule, and mends what it says it mends.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

of=.c
expect()        # text of a file of that kind (printf form), rule that must be named ("" when it is fine)
{
	printf "$1" >"$work/a$of"
	if output=$("$source/tools/fmt.sh" --check "$work/a$of" 2>&1); then status=0; else status=1; fi
	if [ -z "$2" ] && [ $status -eq 0 ]; then return; fi
	if [ -n "$2" ] && [ $status -eq 1 ] && [[ $output == *"$2"* ]]; then return; fi
	echo "$1: expected '${2:-no complaint}', exit $status, got: $output"
	exit 1
}

expect \
	'#include <stdio.h>\n\n#include "base/err.h"\n#include "graph/ir.h"\n\nint f(void)\n{\n\tif (1)\n'\
'\t\treturn 1;\n}\n' ''
expect 'int a;\r\n'                              'line ends with CR'
expect 'int a; \n'                               'trailing blanks'
expect 'int a;'                                  'no newline at the end'
expect '    int a;\n'                            'indent with tabs'
expect 'int f(void) {\n'                         'the brace of a function'
expect '\tif (a)\n\t{\n'                         'the brace of a block'
expect '\tif(a)\n'                               'a blank between keyword'
expect '\tif (a){\n'                             'a blank before the brace'
expect '// why\n'                                'comments are /* */'
expect 'char* a;\n'                              'the asterisk belongs to the name'
expect '#include "graph/ir.h"\n#include "base/err.h"\n' 'include order'
expect '#include "base/err.h"\n\n#include <stdio.h>\n'  'include order'
expect '#include <stdio.h>\n#include "base/err.h"\n'    'a blank line between groups'

# 110 columns, tabs of 8: all of a line that is no row of a table
long=$(printf 'a%.0s' {1..108})
expect "i $long\n"                               ''
expect "in $long\n"                              'a.c:1: wider than 110 columns'
expect "\t${long:0:102}\n"                       ''
expect "\t${long:0:103}\n"                       'wider than 110 columns'
expect "/* $long */\n"                           'wider than 110 columns'
expect " * $long\n"                              'wider than 110 columns'
expect "|| $long\n"                              'wider than 110 columns'
expect "\tX($long)\n"                            ''
expect "\t{ $long },\n"                          ''
of=.md
expect "| $long |\n"                             ''
expect "words $long\n"                           'wider than 110 columns'
block='```'
expect "$block\nprinted $long\n$block\n"        ''
expect "$block\nprinted $long\n$block\nof $long\n" 'a.md:4: wider than 110 columns'
expect "${block}sh\nrun $long\n$block\n"        'a.md:2: wider than 110 columns'
for of in .sh .py .awk .cmake .yaml .json; do
	expect "X($long)\n"                          'wider than 110 columns'
done
of=.c

printf '#include "graph/ir.h"\n#include "base/err.h"\n\nint f(void)\n{\n\tif(1) \n\t\treturn 1;\r\n}' \
	>"$work/a.c"
"$source/tools/fmt.sh" "$work/a.c"
printf '#include "base/err.h"\n#include "graph/ir.h"\n\nint f(void)\n{\n\tif (1)\n\t\treturn 1;\n}\n' |
	cmp - "$work/a.c"

# what --check lets pass stays as it is
printf '#include "base/text.h"\n#include "base/err.h"\n#include "graph/ir.h"\n' >"$work/a.c"
cp "$work/a.c" "$work/b.c"
"$source/tools/fmt.sh" --check "$work/a.c"
"$source/tools/fmt.sh" "$work/a.c"
cmp "$work/a.c" "$work/b.c"
echo "each rule is named; the mechanical ones are mended"
