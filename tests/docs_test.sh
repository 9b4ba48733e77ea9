#!/bin/bash
# Each kind of untruth in a document is named with its line.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{src/cmd/run,src/base,docs,tests,tools,cmake,fuzz}
cp "$source/dev" "$work/dev"
echo 'int hd_hash(void);' >"$work/src/base/hash.h"
printf '\t.name = "run", .args = "JOB",\n\t.name = "ckpt ls",\n' >"$work/src/cmd/run/run.c"

expect()        # text of README.md, complaint ("" when it is true), HD_DOCS_RUN
{
	printf "$1" >"$work/README.md"
	if output=$(HD_DOCS_RUN=${3:-0} "$source/tools/docs.sh" "$work" 2>&1); then
		status=0
	else
		status=1
	fi
	if [ -z "$2" ] && [ $status -eq 0 ]; then return; fi
	if [ -n "$2" ] && [ $status -eq 1 ] && [[ $output == *"$2"* ]]; then return; fi
	echo "$1: expected '${2:-no complaint}', exit $status, got: $output"
	exit 1
}

expect 'Type `./dev build`, read `src/base/hash.h`, `src/<room>/hash.h` and `hd_hash()`.\n' ''
expect '```\n./dev build && build/release/heddle run x.yaml\n```\n' ''
expect '`heddle ckpt ls x`, `heddle ckpt` and `heddle run x`\n' ''
expect '`heddle ckpt sl x`\n'             "README.md:1: heddle has no verb 'ckpt sl'"
expect 'one\n`./dev bulid`\n'              "README.md:2: ./dev has no verb 'bulid'"
expect '```\n$ heddle runn x.yaml\n```\n'  "README.md:2: heddle has no verb 'runn x'"
expect 'see `src/base/hsah.h`\n'           'README.md:1: no such file: src/base/hsah.h'
expect 'see [it](docs/no.md)\n'            'README.md: no such link: docs/no.md'
expect 'call `hd_hsah()`\n'                'README.md:1: nothing is called hd_hsah'
expect '```sh\ntrue\n```\n'                '' 1
expect '```sh\necho x >made\ntest -f dev && cat made\n```\n' '' 1
[ ! -e "$work/made" ] || { echo "the commands of a document write into the tree"; exit 1; }
expect '```sh\nfalse\n```\n'               'README.md: failed: false' 1
demo()          # DIGEST DIGEST KERNELS
{
	printf '<!-- demo x -->\\n  state    %s   (1)\\n  state    %s   (2)   IDENTICAL\\n(%s)\\n' "$@"
	printf '<!-- /demo x -->\\n'
}
one=0123456789abcdef0123456789abcdef two=1123456789abcdef0123456789abcdef
expect "$(demo $one $one "kernels: library on avx2, fingerprint $two")" ''
expect "$(demo $one $two "kernels: library on avx2, fingerprint $two")" 'demo x does not show one digest'
expect "$(demo $one $one "kernels: library on avx2")" 'README.md: demo x does not say which kernels'
mkdir "$work/bench"
for word in true false; do
	printf '#!/bin/sh\n[ "$*" = "--check train" ] && %s\n' $word >"$work/bench/proof.sh"
	chmod +x "$work/bench/proof.sh"
	shown=$(demo $one $one "kernels: library on avx2, fingerprint $two" | sed 's/demo x/demo train/g')
	complaint=$([ $word = true ] || echo 'the digest of demo train is another one here')
	expect "$shown" "$complaint" 1
done
rm -r "$work/bench"
comment() { printf '%s\nint x;         /* so says base/hash.h: hd_hash() */\n' "$1" >"$work/src/base/x.h"; }
for good in '/* see hash.h, base/hash.h, <some.h>, hd_reader_NAME */' \
	'/* x.h has "/*", hd_<name>_put() and hd_hash_ */'; do
	comment "$good"
	expect 'text\n' ''
done
comment '/* the way of
 * hsah.h */'
expect 'text\n' 'src/base/x.h:2: no such file: hsah.h'
comment '/* as base/x.h, room/x.h. */'
expect 'text\n' 'src/base/x.h:1: no such file: room/x.h'
comment 'int y; /* hd_hash() */ int z; /* hd_hsah() */'
expect 'text\n' 'src/base/x.h:1: nothing is called hd_hsah'
comment 'const char *y = "HD_SET"; /* HD_SET, HD_UNSET */'
expect 'text\n' 'src/base/x.h:1: nothing is called HD_UNSET'
echo "wrong verbs, paths, links, names, commands, digests of demos and comments of what is gone are named"
