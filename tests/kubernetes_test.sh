#!/bin/bash
# The manifests in examples/launch/k8s: against the public schema, where Python has it (pip install
# kubernetes-validate), and what no schema knows: names that have to be the same in two places, time to hand
# over, options that the program has. Each is tried broken, too.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
heddle=${HEDDLE_BIN:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "kubernetes_test: $*"; exit 1; }
cp -r "$source/examples/launch/k8s" "$work/good"

value() { sed -n "s/.*$1: \([^],}# ]*\).*/\1/p" "$2"; }

judge() # folder
{
	local run=$1/run.yaml claim=$1/claim.yaml name kill notice verb option bad=
	[ "$(value claimName "$run" | sort -u)" = "$(sed -n 's/^  name: //p' "$claim")" ] || bad+=" claim"
	[ "$(value secretName "$run" | sort -u)" = heddle-key ] || bad+=" secret"
	grep -q 'clusterIP: None' "$run" || bad+=" headless"
	grep -q 'selector: {app: heddle, part: coordinator}' "$run" &&
		grep -q 'labels: {app: heddle, part: coordinator}' "$run" || bad+=" selector"
	name=$(sed -n '/^kind: Service/,/^---/s/^  name: //p' "$run")
	grep -q "getent hosts $name)" "$run" || bad+=" name"
	[ "$(value ' port' "$run")" = "$(value containerPort "$run")" ] &&
		[ "$(grep -c ":$(value containerPort "$run")\"" "$run")" = 3 ] || bad+=" port"
	# KILL comes so long after the notice: it has to be beyond the time that the notice names
	kill=$(value terminationGracePeriodSeconds "$run" | sort -n | head -n 1)
	for notice in $(sed -n 's/.*--notice, \([0-9]*\)s\].*/\1/p' "$run"); do
		[ "$notice" -lt "$kill" ] || bad+=" grace"
	done
	[ "$(grep -c 'preStop: ' "$run")" = "$(grep -c 'restartPolicy: Never' "$run")" ] || bad+=" preStop"
	[ "$(grep -c HEDDLE_NOTICE_FILE "$run")" = "$(grep -c 'preStop: ' "$run")" ] || bad+=" notice"
	for verb in ${heddle:+run resume worker}; do
		for option in $(sed -n "s/.*heddle $verb \(.*\)/\1/p" "$run" | grep -o -e '--[a-z]*'); do
			"$heddle" $verb --help | grep -q -e "$option " || bad+=" $verb $option"
		done
	done
	echo "$bad"
}

schema() # folder; false: a manifest is none
{
	python3 - "$1"/*.yaml <<-'END' >"$work/out" 2>&1
	import sys, yaml, kubernetes_validate
	for name in sys.argv[1:]:
	    for one in yaml.safe_load_all(open(name)):
	        kubernetes_validate.validate(one, "1.31", strict=True)
	END
}

said=$(judge "$work/good")
[ -z "$said" ] || fail "the manifests do not fit together:$said"
broken() # what is said, sed expression
{
	rm -rf "$work/bad"
	cp -r "$work/good" "$work/bad"
	sed -i "$2" "$work/bad/run.yaml"
	! cmp -s "$work/bad/run.yaml" "$work/good/run.yaml" || fail "nothing was broken by $2"
	[[ $(judge "$work/bad") == *" $1"* ]] || fail "not seen: $2"
}
broken claim '0,/claimName: heddle-work/s//claimName: other/'
broken secret 's/secretName: heddle-key/secretName: other/'
broken headless 's/clusterIP: None/type: ClusterIP/'
broken selector 's/selector: {app: heddle, part: coordinator}/selector: {app: heddle}/'
broken name 's/getent hosts heddle-run/getent hosts heddle/'
broken port 's/containerPort: 7000/containerPort: 7001/'
broken grace '0,/terminationGracePeriodSeconds: 60/s//terminationGracePeriodSeconds: 30/'
broken preStop '0,/preStop: .*/s///'
broken notice '0,/HEDDLE_NOTICE_FILE/s//OTHER/'
[ -z "$heddle" ] || broken 'worker --joins' 's/worker --join /worker --joins /'

python3 -c 'import yaml, kubernetes_validate' 2>/dev/null ||
	{ echo "skip: the schema of Kubernetes (pip install kubernetes-validate)"; exit 0; }
schema "$work/good" || fail "against the schema: $(tail -n 5 "$work/out")"
cp -r "$work/good" "$work/none"
sed -i 's/restartPolicy: Never/restartPolicy: [Never]/' "$work/none/run.yaml"
! schema "$work/none" || fail "the schema sees nothing"
