#!/bin/bash
# The engine's parts (src/engine/README.md): the store alone knows where parameters lie, and no file of the
# room includes the inside of more than two other parts. How it is counted: an inside is a header
# engine/*_int.h; x.c's own is x_int.h and does not count; unit tests and their testing.h may look at all. An
# inside includes no other, so that what is counted is what a file sees.
set -eu -o pipefail
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
engine=$source/src/engine
failed=0
fail() { echo "engine_parts_test: $*" >&2; failed=1; }

files=$(cd "$engine" && ls -- *.c *.h | grep -vE '_test\.c$|^testing.*\.h$')

# the fields of the store's struct, as store.c declares them: its memory is the array `flat`
grep -q '^struct hd_param_store {' "$engine/store.c" || fail "store.c declares no struct hd_param_store"
grep -q 'float \*flat\[HD_VECS\];' "$engine/store.c" ||
	fail "the memory of the store is not its field flat any more: say its name here"
for file in $files; do
	[ "$file" = store.c ] && continue
	at=$(grep -nE '^struct hd_param_store \{|(->|\.)flat\[' "$engine/$file" || true)
	[ -z "$at" ] || fail "$file reaches into the store: $at"
	# its addresses are arguments of a device's functions and entries of the state table
	past='hd_param_store_at\([^;]*\)(\[[^]]*\])? *[-+*/]?= |mem(cpy|set|move)\([^;]*hd_param_store_at'
	at=$(grep -nE "$past" "$engine/$file" || true)
	[ -z "$at" ] || fail "$file writes parameters past the store: $at"
done

for file in $files; do
	own=${file%.*}_int.h
	insides=$(sed -nE 's/^#include "engine\/([a-z_]*_int\.h)".*/\1/p' "$engine/$file" |
		grep -vx "$own" || true)
	count=$(grep -c . <<<"$insides" || true)
	insides=$(tr '\n' ' ' <<<"$insides")
	case $file in
	*_int.h) [ "$count" = 0 ] || fail "$file is an inside and includes another: $insides" ;;
	*) [ "$count" -le 2 ] || fail "$file includes the inside of $count others: $insides" ;;
	esac
done
[ $failed = 0 ] || exit 1
echo "engine_parts_test: $(wc -l <<<"$files") files, the store's memory is its own, at most two insides each"
