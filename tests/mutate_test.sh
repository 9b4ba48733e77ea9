#!/bin/bash
# A mutant that a test notices is killed, one that none notices is listed, one that is
# excused is neither; the working tree is never touched.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p src/sum tests
git init -q .
git config user.email a@example.org
git config user.name a
echo build/ >.gitignore
printf 'int sum(int n);\nint sum(int n)\n{\n\treturn n;\n}\nint main(void) { return sum(3) == 3 ? 0 : 1; }\n' >src/sum/a.c
git add .
git commit -qm start
printf 'int sum(int n);\nint sum(int n)\n{\n\tif (n < 0 || n > 900)\n\t\tn = 0;\n\treturn n + 0;\n}\nint main(void) { return sum(3) == 3 ? 0 : 1; }\n' >src/sum/a.c
before=$(cat src/sum/a.c)

mutate() { HD_ROOT=$work "$source/tools/mutate.sh" --since HEAD -- sh -c 'cc -o a.out src/sum/a.c && ./a.out'; }

if mutate >out 2>&1; then echo "survivors must be red"; cat out; exit 1; fi
grep -qF 'survived: src/sum/a.c:4: if (n < 0 || n > 900) => if (n < 0 || n >= 900)' out
grep -qF 'survived: src/sum/a.c:5: n = 0; => (void)0;' out
if grep -F 'return n + 1;' out; then echo 'the test notices this one'; exit 1; fi
tail -n 1 out | grep -Eq '^[0-9]+ of [0-9]+ mutants tried: [1-9][0-9]* killed, .* 0 excused, [1-9][0-9]* survived$'
[ "$before" = "$(cat src/sum/a.c)" ]

sed -n 's/^survived: \(.*\.c\):[0-9]*: /\1: /p' out | sed 's/$/    # tried by the test above/' >tests/mutants.txt
mutate >out 2>&1 || { echo "excused mutants must not be red"; cat out; exit 1; }
tail -n 1 out | grep -q ' 0 survived$'
echo "survivors are listed, excuses hold, the tree is untouched"
