#!/bin/bash
# delayed.sh -- what delayed updates cost in quality: validation losses of one model under each optim.update,
# with the same seeds, as a page for docs/results. STEPS and SEEDS may be set; four minutes of one core.
set -eu
heddle=${HEDDLE_BIN:-$(dirname "$0")/../build/release/heddle}
text=${TEXT:-${HEDDLE_SHARED:?set TEXT to a text file}/data/text/tinyshakespeare.txt}
steps=${STEPS:-300} seeds=${SEEDS:-1 2 3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/job.yaml" <<END
job: {name: delayed, steps: $steps}
model: {use: "builtin:gpt", args: {layers: 4, width: 48, heads: 4, context: 64, vocab: 256}}
data: {kind: text, path: "$text", split: {train: 0.99, valid: 0.01}}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: adamw, lr: 3e-3, schedule: {kind: cosine, warmup: 50, floor: 0.1}}
eval: {every: $((steps / 6))}
checkpoint: {every: 10 min}
END

# name, virtual nodes, settings; D of each of four stages
shapes=(
	"flush|8|-s optim.update=flush|0 0 0 0"
	"stash|8|-s optim.update=stash -s optim.cuts=auto:4|1 1 1 0"
	"2bw|8|-s optim.update=2bw|1 1 1 1"
	"stash, V 1|1|-s optim.update=stash -s optim.cuts=auto:4|3 2 1 0"
	"vsync, V 1|1|-s optim.update=vsync -s optim.cuts=auto:4|3 3 3 3"
)
optims=("adamw|-s optim.lr=3e-3" "adamw|-s optim.lr=5e-4" "momentum|-s optim.lr=0.1")

# the losses of a run, step by step: "100 2.50"
losses()
{
	sed -n 's/.*"kind":"eval","step":\([0-9]*\),.*"split":"valid","loss":\([0-9.]*\),.*/\1 \2/p' \
		"$1/events.ndjson" | sort -n -u -k1,1
}

n=0 k=0
for optim in "${optims[@]}"; do
	IFS='|' read -r kind rate <<<"$optim"
	for i in "${!shapes[@]}"; do
		IFS='|' read -r _ vns set _ <<<"${shapes[i]}"
		for seed in $seeds; do
			n=$((n + 1))
			# a run that diverges has no last loss
			# shellcheck disable=SC2086
			"$heddle" run "$work/job.yaml" --devices 1 --threads 1 --out "$work/$n" -q \
				-s job.seed=$seed -s optim.kind=$kind $rate -s batch.virtual_nodes=$vns $set \
				>"$work/said-$n" 2>&1 || tail -n 1 "$work/said-$n" >&2 &
		done
		wait
		for seed in $seeds; do
			k=$((k + 1))
			losses "$work/$k" | sed "s/^/$kind${rate##*lr=} $i $seed /" >>"$work/all"
		done
	done
done

cat <<END
# What delayed updates cost

Made by \`bench/delayed.sh\` on $(date -u +%F), program $("$heddle" version | sed -n 1p): a byte-level
GPT of 4 layers of width 48, $steps steps of 16 x 64 bytes of tiny Shakespeare, one core a run. Loss is
that of the last 1 % of the file, in nats per byte: mean of seeds $(echo $seeds | sed 's/ /, /g'), and
behind +- half of the range between the best and the worst seed. The column D has the delay of each of
four stages, in steps. Rates are those of the row, for all updates: none was tuned for a delay.

END
for optim in "${optims[@]}"; do
	IFS='|' read -r kind rate <<<"$optim"
	echo "## $kind, lr ${rate##*lr=}"
	echo
	awk -v key="$kind${rate##*lr=}" -v shapes="$(printf '%s\n' "${shapes[@]}")" \
		-v nseeds="$(wc -w <<<"$seeds")" '
	$1 == key {
		k = $2 SUBSEP $4
		sum[k] += $5; n[k]++
		if (!(k in lo) || $5 < lo[k]) lo[k] = $5
		if (!(k in hi) || $5 > hi[k]) hi[k] = $5
		if (!($4 in seen)) { seen[$4] = 1; step[++nsteps] = $4 }
	}
	END {
		for (i = 1; i <= nsteps; i++)
			for (j = i + 1; j <= nsteps; j++)
				if (step[j] < step[i]) { t = step[i]; step[i] = step[j]; step[j] = t }
		last = step[nsteps]
		head = "| update | D |"; rule = "|---|---|"
		for (i = 1; i <= nsteps; i++) { head = head " step " step[i] " |"; rule = rule "--:|" }
		print head " against flush |"; print rule "---|"
		m = split(shapes, row, "\n")
		for (r = 0; r < m; r++) {
			split(row[r + 1], f, "|")
			line = "| " f[1] " | " f[4] " |"
			for (i = 1; i <= nsteps; i++) {
				k = r SUBSEP step[i]
				if (n[k] < nseeds)
					line = line " none |"
				else
					line = line sprintf(" %.4f +- %.4f |", sum[k] / n[k],
						(hi[k] - lo[k]) / 2)
			}
			a = r SUBSEP last; z = 0 SUBSEP last
			if (r == 0) verdict = ""
			else if (n[a] < nseeds) verdict = "**loses**: a run diverged"
			else {
				d = sum[a] / n[a] - sum[z] / n[z]
				spread = (hi[a] - lo[a]) / 2 + (hi[z] - lo[z]) / 2
				verdict = d < -spread ? "better" : "within the spread of seeds"
				if (d > spread) verdict = "**loses**"
				verdict = sprintf("%+.4f: %s", d, verdict)
			}
			print line " " verdict " |"
		}
		print ""
	}' "$work/all"
done
