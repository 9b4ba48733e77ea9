#!/bin/bash
# words.sh: no file of the tree has a word of tools/words where that does not let it stand.
# Prints FILE:LINE: WORD; exit 1 if there is one. HD_TREE: of another tree.
set -eu -o pipefail
cd "${HD_TREE:-$(dirname "$0")/..}"

texts()                 # what was written here: no data and no inputs of fuzz targets
{
	git ls-files --cached --others --exclude-standard |
		grep -E '\.(c|h|def|sh|md|py|awk|cmake|yaml|txt)$|^dev$|^\.ci/run$' |
		grep -vE '^(tests/data|fuzz/corpus)/|^(tools/words|tests/words_test)\.sh$' | LC_ALL=C sort -u
}

mapfile -t files < <(texts | while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
awk '
	function below(place, path) { return path == place || index(path, place "/") == 1 }
	function may(word, path,    n, at, i) {
		n = split(records where[word], at, " ")
		for (i = 1; i <= n; i++) if (below(at[i], path)) return 1
		return 0
	}
	FILENAME == "tools/words" {
		sub(/#.*/, "")
		if ($1 == "word") for (i = 2; i <= NF; i++) refused[$i]
		else if ($1 == "may") { for (i = 3; i <= NF; i++) where[$2] = where[$2] " " $i }
		else if ($1 == "record") for (i = 2; i <= NF; i++) records = records " " $i
		else if (NF) { printf "tools/words:%d: unknown row %s\n", FNR, $1; bad = 1 }
		next
	}
	{
		n = split(tolower($0), part, /[^a-z_0-9]+/)
		for (i = 1; i <= n; i++) if (part[i] in refused && !may(part[i], FILENAME)) {
			printf "%s:%d: \"%s\": say it with the noun of the field (tools/words)\n",
				FILENAME, FNR, part[i]
			bad = 1
		}
	}
	END { exit bad }' tools/words "${files[@]}"
