#!/bin/bash
# lint.sh [FILE...]: cppcheck and clang-tidy over the sources given, or all. Needs
# build/debug/compile_commands.json (`./dev lint` makes it). Exit 1 on a complaint.
set -eu -o pipefail
cd "$(dirname "$0")/.."

database=build/debug/compile_commands.json
mapfile -t sources < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else find src -name '*.c' |
	LC_ALL=C sort; fi)
[ ${#sources[@]} -gt 0 ] || exit 0
failed=0

# what cppcheck says of the tables built by macros and of unmatched suppressions is noise
cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=unknownMacro --suppress=normalCheckLevelMaxBranches \
	--template='{file}:{line}: {severity}: {message} [{id}]' -j "$(nproc)" \
	-I src -I . -I build/debug/gen -DHD_FAILPOINTS -U_WIN32 "${sources[@]}" || failed=1

for source in "${sources[@]}"; do
	grep -qF "$source\"" $database && echo "$source"
done | xargs -r -P "$(nproc)" -n 4 clang-tidy -p build/debug --quiet 2>/dev/null || failed=1
exit $failed
