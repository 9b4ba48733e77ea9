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
printf '%b' 'int sum(int n);\nint sum(int n)\n{\n\treturn n;\n}\n' \
	'int main(void) { return sum(3) == 3 ? 0 : 1; }\n' >src/sum/a.c
git add .
git commit -qm start
printf '%b' 'int sum(int n);\nint sum(int n)\n{\n\tif (n < 0 || n > 900)\n\t\tn = 0;\n\treturn n + 0;\n}\n' \
	'int main(void) { return sum(3) == 3 ? 0 : 1; }\n' >src/sum/a.c
before=$(cat src/sum/a.c)

mutate()
{
	HD_ROOT=$work "$source/tools/mutate.sh" --since HEAD -- sh -c 'cc -o a.out src/sum/a.c && ./a.out'
}

if mutate >out 2>&1; then echo "survivors must be red"; cat out; exit 1; fi
grep -qF 'survived: src/sum/a.c:4: if (n < 0 || n > 900) => if (n < 0 || n >= 900)' out
grep -qF 'survived: src/sum/a.c:5: n = 0; => (void)0;' out
if grep -F 'return n + 1;' out; then echo 'the test notices this one'; exit 1; fi
tail -n 1 out |
	grep -Eq '^[0-9]+ of [0-9]+ mutants tried: [1-9][0-9]* killed, .* 0 excused, [1-9][0-9]* survived$'
[ "$before" = "$(cat src/sum/a.c)" ]

# Deleted guards, parts of conditions, conditions turned round, calls the other way round: each is made once.
mutate_only()
{
	HD_ROOT=$work "$source/tools/mutate.sh" --only "$1" --list src/sum/b.c |
		sed 's/^src\/sum\/b.c://' | LC_ALL=C sort
}
cat >src/sum/b.c <<'END'
void tell(int to, int what);
bool is_even(int n) { return n >= 0 && !(n & 1); }
int pass(int n, const char *name)
{
	if (n < 0 ||
	    (name && *name == ')'))
		return 1;
	if (n > 9) {
		tell(n, 1);
		tell(n,
			2);
	}
	tell(0, 3);
	tell(1, 3);
	for (int i = 0; i < n && name; i++)
		n--;
	return 0;
}
END
mutate_only guard >out
diff - out <<'END'
5: guard: if (n < 0 || (name && *name == ')')) => if (0)
8: guard: if (n > 9) { => if (1) {
END
mutate_only negate >out
diff - out <<'END'
5: negate: if (n < 0 || (name && *name == ')')) => if (!(n < 0 || (name && *name == ')')))
8: negate: if (n > 9) { => if (!(n > 9)) {
END
mutate_only conjunct >out
diff - out <<'END'
15: conjunct: for (int i = 0; i < n && name; i++) => for (int i = 0; i < n; i++)
15: conjunct: for (int i = 0; i < n && name; i++) => for (int i = 0; name; i++)
2: conjunct: return n >= 0 && !(n & 1); => return !(n & 1);
2: conjunct: return n >= 0 && !(n & 1); => return n >= 0;
5: conjunct: if (n < 0 || (name && *name == ')')) => if ((name && *name == ')'))
5: conjunct: if (n < 0 || (name && *name == ')')) => if (n < 0 || (*name == ')'))
5: conjunct: if (n < 0 || (name && *name == ')')) => if (n < 0 || (name))
5: conjunct: if (n < 0 || (name && *name == ')')) => if (n < 0)
END
mutate_only swap >out
diff - out <<'END'
13: swap: tell(0, 3); tell(1, 3); => tell(1, 3); tell(0, 3);
END
mutate_only drop >out
diff - out <<'END'
10: drop: tell(n, 2); => (void)0;
13: drop: tell(0, 3); => (void)0;
14: drop: tell(1, 3); => (void)0;
16: drop: n--; => (void)0;
9: drop: tell(n, 1); => (void)0;
END
rm src/sum/b.c

# Without a command: all of a file in one object, in the place of the library's; what does not compile is left
# out, what never ends is stopped, rows of a table are mutants too. The first row of tests/judges.txt that
# fits counts.
mkdir -p build/debug/CMakeFiles
cat >src/sum/c.c <<'END'
static const int row[] = {
	3, 4,
};
int twice(int n);
int sum_to(int n);
int twice(int n) { return 2 * n; }
int sum_to(int n)
{
	int s = 0;

	if (n == 77)
		goto out;
	for (int i = 0; i < n; i++)
		s += i;
out:
	return s + row[0] - 3 + (n > 900);
}
END
printf '%b' 'int twice(int n);\nint sum_to(int n);\n' \
	'int main(void) { return sum_to(4) == 6 && twice(1) == 2 && twice(3) == 6 ? 0 : 1; }\n' \
	>src/sum/c_test.c
cat >build/debug/build.ninja <<END
rule cc
  command = cc -MD -MT \$out -MF \$out.d -o \$out -c \$in
rule ar
  command = rm -f \$out && ar qc \$out \$in
rule link
  command = : && cc \$test -o \$out \$in && :
build CMakeFiles/hd_sum.dir/src/sum/c.c.o: cc $work/src/sum/c.c
build CMakeFiles/sum_c_test.dir/src/sum/c_test.c.o: cc $work/src/sum/c_test.c
build libhd_sum.a: ar CMakeFiles/hd_sum.dir/src/sum/c.c.o
build sum_c_test: link libhd_sum.a | CMakeFiles/sum_c_test.dir/src/sum/c_test.c.o
  test = CMakeFiles/sum_c_test.dir/src/sum/c_test.c.o
END
if HD_SECONDS=1 HD_MUTANTS=0 HD_ROOT=$work "$source/tools/mutate.sh" src/sum/c.c >out 2>&1; then
	echo "survivors must be red"
	cat out
	exit 1
fi
tail -n 1 out |
	grep -Eq \
	'^[0-9]+ of [0-9]+ mutants tried: [1-9][0-9]* killed, [0-9]+ did not compile, 0 excused, 7 survived$'
sed '$d' out | LC_ALL=C sort | diff - /dev/fd/3 3<<'END'
survived: src/sum/c.c:11: if (n == 77) => if (0)
survived: src/sum/c.c:11: if (n == 77) => if (n == 78)
survived: src/sum/c.c:13: for (int i = 0; i < n; i++) => for (int i = 1; i < n; i++)
survived: src/sum/c.c:16: return s + row[0] - 3 + (n > 900); => return s + row[0] - 3 + (n > 901);
survived: src/sum/c.c:16: return s + row[0] - 3 + (n > 900); => return s + row[0] - 3 + (n >= 900);
survived: src/sum/c.c:16: return s + row[0] - 3 + (n > 900); => return s + row[0] - 3 - (n > 900);
survived: src/sum/c.c:2: 3, 4, => 3, 5,
END
rm -r build src/sum/c*

git checkout -q src
printf '%s' "$before" >src/sum/a.c
mutate >out 2>&1 || true
sed -n 's/^survived: \(.*\.c\):[0-9]*: /\1: /p' out |
	sed 's/$/    # tried by the test above/' >tests/mutants.txt
mutate >out 2>&1 || { echo "excused mutants must not be red"; cat out; exit 1; }
tail -n 1 out | grep -q ' 0 survived$'
echo "survivors are listed, excuses hold, the tree is untouched"
