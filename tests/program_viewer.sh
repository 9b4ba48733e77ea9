#!/bin/bash
# heddle trace open: a page that needs nothing else. Its policy names the script and style that it has; in a
# browser, where there is one, tests/viewer_browser.py looks at what it shows.
. "$(dirname "$0")/program.sh"

offset() { grep -abo -- "$2" "$1" | tail -n 1 | cut -d : -f 1; }
inside()                # PAGE TAG: the text between the last <TAG> and its end
{
	local begin=$(($(offset "$1" "<$2>") + ${#2} + 2)) end
	end=$(offset "$1" "</$2>")
	tail -c +$((begin + 1)) "$1" | head -c $((end - begin))
}
hash_of() { printf "$(sha256sum | cut -d ' ' -f 1 | sed 's/../\\x&/g')" | base64 -w 0; }

page_ok()               # PAGE
{
	local tag
	[ -s "$1" ] || failed "no page $1"
	for tag in script style; do
		[ "$(inside "$1" $tag | wc -c)" -gt 1000 ] || failed "$1 has no $tag"
		grep -qF "$tag-src 'sha256-$(inside "$1" $tag | hash_of)'" "$1" ||
			failed "$1: its policy does not name its $tag"
	done
	grep -qF "content=\"default-src 'none';" "$1" || failed "$1: its policy lets in more"
	! grep -qE 'https?:|src=|href=|@import|url\(' "$1" || failed "$1 asks for something else"
}

browser()               # PAGE TEXT
{
	local status=0
	timeout 120 python3 "$SOURCE_DIR/tests/viewer_browser.py" "$1" --find "$2" >out 2>err || status=$?
	[ $status -ne 77 ] || { echo "skip: no browser"; return 0; }
	[ $status -eq 0 ] || failed "$1 in a browser"
}

write_jobs 6
# rings of 64 lose events, which the page has to say
train run mlp.yaml --out mlp --devices 2 -s trace.flight_slots=64
expect 0 heddle trace open mlp --json
json_ok
says '"output":"mlp/trace/run.html"'
page_ok mlp/trace/run.html
browser mlp/trace/run.html F
passed "a run's page stands alone"

expect 0 heddle simulate --schedule 1f1b -p 4 -m 8 --steps 3 --trace 'a<b>&"c.hdfr'
expect 0 heddle trace open 'a<b>&"c.hdfr' mlp -o both.html
page_ok both.html
! grep -q '<b>' both.html || failed "the name of a file is markup"
grep -q '<title>a&lt;b&gt;&amp;&quot;c and mlp</title>' both.html || failed "the title"
browser both.html F
passed "a plan above a run is one page, and names are texts"

cp 'a<b>&"c.hdfr' kept.hdfr
expect 2 heddle trace open kept.hdfr -o kept.hdfr
cmp -s kept.hdfr 'a<b>&"c.hdfr' || failed "a page is written over its recording"
expect 0 heddle trace open 'a<b>&"c.hdfr' --steps 1:2
page_ok 'a<b>&"c.html'
! grep -q 'no such steps' err || failed "steps that are there are missed"
expect 0 heddle trace open 'a<b>&"c.hdfr' --steps 900:901
says 'no such steps'
expect 0 heddle trace merge mlp -o merged.html
page_ok merged.html
for steps in 3 : 3:2 a:b 1:2:3 -1:3; do
	expect 2 heddle trace open mlp --steps "$steps"
	says FROM:TO
done
expect 3 heddle trace open nowhere
mkfifo pipe.hdfr
expect 3 timeout 20 "$HEDDLE_BIN" trace open pipe.hdfr
says 'pipe.hdfr is no file'
mkfifo mlp/flight/9.hdfr
expect 0 timeout 20 "$HEDDLE_BIN" trace open mlp
says 'left out: mlp/flight/9.hdfr'
expect 2 heddle trace open mlp mlp mlp
passed "what cannot be shown is refused"
