#!/bin/bash
# heddle data prepare-graph, and data show and verify of what it makes.
. "$(dirname "$0")/program.sh"
prepare() { heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt "$@"; }

# two rings of 40 vertices, one edge between them; even and odd ids
awk 'BEGIN { print "# two rings"; for (i = 0; i < 80; i++) print i, (i + 2) % 80; print "3\t10"; print "10,3";
	print "5 5" }' >edges.txt
awk 'BEGIN { for (i = 0; i < 80; i++) print i % 3 - (i == 79) * 2, i % 7 ":1", "9:" i / 4 }' >features.svm
printf 'train 0 1 2 3\nval 4 5\ntest 70 71 72\n' >split.txt

expect 0 prepare -o g.graph --intervals 2
says 'vertices   80, 10 features (sparse, 160 stored), 3 classes'
says 'edges      81 undirected; left out: 1 doubles, 1 loops'
says 'sets       train 4, valid 2, test 3'
says ': 1 edges (1.2 %) go between two'
[ "$(ls g.graph*)" = g.graph ] || failed "scratch files stay: $(ls)"
expect 0 heddle data verify g.graph
says 'ok: '
expect 0 heddle data show g.graph --json
says '"edges":81,"directed":false,"loops":1,"duplicates":1,"width":10'
says '"intervals":2'
expect 0 heddle data verify g.graph --json
gzip -k edges.txt features.svm split.txt
expect 0 heddle data prepare-graph --edges edges.txt.gz --features features.svm.gz --split split.txt.gz \
	-o packed.graph --intervals 2 --memory 1MiB -q
cmp -s g.graph packed.graph || failed "gzipped files and less memory give other bytes"
expect 0 prepare -o own.graph --intervals 2 --splitter own --directed --json
says '"edges":82,"directed":true'
says '"splitter":"own"'
expect 0 heddle data verify own.graph
passed "a graph is prepared, shown and verified"

# the same graph in other forms
{
	echo '%%MatrixMarket matrix coordinate pattern general'
	tr ',\t' '  ' <edges.txt | awk '/^[0-9]/ { print $1 + 1, $2 + 1 }' >entries
	echo "80 80 $(wc -l <entries)"
	cat entries
} >edges.mtx
tr ',\t' '  ' <edges.txt |
	awk '/^[0-9]/ { printf "\\%03o\\0\\0\\0\\%03o\\0\\0\\0", $1, $2 }' >octal
printf "$(cat octal)" >edges.u32
for edges in edges.mtx edges.u32; do
	expect 0 heddle data prepare-graph --edges $edges --features features.svm --split split.txt \
		-o form.graph --intervals 2 -q
	cmp -s g.graph form.graph || failed "$edges gives another graph"
done
mkdir raw sets
awk '/^[0-9]/ { gsub(/[ \t]/, ","); print }' edges.txt | gzip >raw/edge.csv.gz
awk '{
	for (i = 0; i < 10; i++) value[i] = 0
	for (i = 2; i <= NF; i++) { split($i, at, ":"); value[at[1]] = at[2] }
	for (i = 0; i < 10; i++) printf "%s%s", value[i], i < 9 ? "," : "\n"
}' features.svm >raw/node-feat.csv
cut -d ' ' -f 1 features.svm | gzip >raw/node-label.csv.gz
for set in train val test; do
	name=${set/val/valid}
	sed -n "s/^$set //p" split.txt | tr ' ' '\n' >sets/$name.csv
done
expect 0 heddle data prepare-graph --edges raw --features raw --split sets -o ogb.graph --intervals 2
says 'vertices   80, 10 features (dense, 800 stored), 3 classes'
says 'edges      81 undirected; left out: 1 doubles, 1 loops'
says 'sets       train 4, valid 2, test 3'
expect 0 heddle data verify ogb.graph
rm sets/test.csv
expect 3 heddle data prepare-graph --edges raw --features raw --split sets -o ogb.graph
says 'the folder sets has no test.csv, plain or gzipped'
passed "the same graph in other forms"

cp g.graph bad.graph
printf '\x41' | dd of=bad.graph bs=1 seek=4200 conv=notrunc 2>/dev/null
expect 5 heddle data verify bad.graph
says 'bad.graph: section "'
says 'has another digest than the head says: the file was damaged; prepare the graph again'
head -c 6000 g.graph >bad.graph
expect 3 heddle data show bad.graph
says 'it is cut off'
passed "a damaged graph is refused"

cp g.graph before
expect 2 prepare
says '--output FILE is missing'
expect 2 prepare -o g.graph --intervals 3
says '3 intervals: a power of two'
expect 2 prepare -o g.graph --intervals 128
says '128 intervals of 80 vertices: a power of two'
expect 3 prepare -o nodir/g.graph
says 'nodir/g.graph.tmp'
expect 3 prepare -o g.graph --classes 2
says 'features.svm:3: label 2, of 2 classes'
expect 2 prepare -o g.graph --memory 1KiB
says 'at least 1 MiB'
echo 'val 4' >none.txt
expect 3 prepare -o g.graph --split none.txt
says 'none.txt: no vertex of the training set has a label'
echo '1 80' >>edges.txt
expect 3 prepare -o g.graph
says 'edges.txt:85: vertex 80, but the features are of 80 vertices'
cmp -s g.graph before || failed "the graph that was there is another one"
passed "bad input is refused with its place, and the old graph stays"

# the citation graphs: what is known of them, and how good the cuts are (a random split cuts 15/16)
cora=$(material data/graphs/cora/edges.txt) || { echo "skip: no citation graphs here"; exit 0; }
citation()      # NAME SPLITTER SAYS MOST_CUT
{
	local from=${cora%/cora/*}/$1
	expect 0 heddle data prepare-graph --edges $from/edges.txt --features $from/features.svm \
		--split $from/split.txt --intervals 16 --splitter $2 -o $1.graph --json
	says "$3"
	awk -F '"(cut|most_vertices|most_edges)":' -v cut=$4 '
		{ exit !($2 + 0 <= cut && $3 + 0 <= 1.10 && $4 + 0 <= 1.25) }' out ||
		failed "$1 by $2 is cut worse than it was: $(cat out)"
}
cora_is='"edges":5278,"directed":false,"loops":0,"duplicates":0,"width":1433,"sparse":true,"features":49216,'
cora_is+='"classes":7,"train":140,"valid":500,"test":1000'
citeseer_is='"edges":4552,"directed":false,"loops":0,"duplicates":0,"width":3703,"sparse":true,'
citeseer_is+='"features":105165,"classes":6,"train":120,"valid":500,"test":1000'
citation cora own "$cora_is" 2226               # 0.45 of a random split's
citation citeseer own "$citeseer_is" 1920
if heddle version | grep -q metis=yes; then
	citation cora metis "$cora_is" 1236             # 0.25
	citation citeseer metis "$citeseer_is" 1066
fi
passed "Cora and Citeseer: what is known of them, and cuts"
