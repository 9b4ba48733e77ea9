#!/bin/bash
# write_pages.sh HEDDLE FOLDER: manual pages and completions, as the program writes them from its tables.
set -eu -o pipefail
heddle=$1 folder=$2
mkdir -p "$folder/man1"
verbs=$("$heddle" help --man)
while read -r verb; do
	"$heddle" help --man $verb >"$folder/man1/heddle-${verb// /-}.1"
done <<<"$verbs"
for shell in bash zsh fish; do
	"$heddle" completion $shell >"$folder/heddle.$shell"
done
