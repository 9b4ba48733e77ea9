#!/bin/bash
# heddle data tokenize: documents, ends, threads, 16 and 32 bits, refusals; a job trains on what it makes.
. "$(dirname "$0")/program.sh"

words()         # N: a tokenizer of N words, w0 to w(N-1), and the end of a text
{
	printf '{"added_tokens": [{"id": %d, "content": "</s>", "single_word": false, "lstrip": false,' "$1"
	printf ' "rstrip": false, "normalized": false, "special": true}],\n'
	printf '"pre_tokenizer": {"type": "Whitespace"},\n'
	printf '"model": {"type": "WordLevel", "unk_token": "w0", "vocab": {'
	seq 0 $(($1 - 1)) | awk '{ printf "%s\"w%d\": %d", (NR > 1 ? ", " : ""), $1, $1 }'
	printf '}}}\n'
}

ids()           # FILE WIDTH: its tokens behind the header
{
	od -An -v -tu"$2" -w"$2" -j 1024 "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}

words 70 >t.json
printf 'w1 w2\nw3 what\n\nw69' >a.txt
printf 'w4' >b.txt
expect 0 heddle data tokenize --tokenizer t.json a.txt b.txt -o out.bin
says 'out.bin: 8 tokens of 16 bits, 2 documents'
same "$(ids out.bin 2)" "1 2 3 0 69 70 4 70" "two documents, each with its end"
expect 0 heddle data tokenize --tokenizer t.json --lines a.txt b.txt -o out.bin --bos w5 --eos '' \
	--boundaries at.bin --json
json_ok
says '"tokens":10,"bits":16,"vocabulary":71,"documents":4'
same "$(ids out.bin 2)" "5 1 2 5 3 0 5 69 5 4" "each line is a document"
same "$(od -An -v -tu8 at.bin | tr -s ' \n' ' ')" " 0 3 6 8 10 " "where each begins"
expect 0 heddle data cat out.bin --tokenizer t.json --count 3
says '"tokens":10,"bits":16,"shown":3,"text":"w5 w1 w2"'
passed "documents of files and lines, begin and end, boundaries, text again"

for i in $(seq 1 3000); do
	echo "{\"id\": $i, \"text\": \"w$((i % 70)) w$((i * 7 % 70))\\nw3\"}"
done >many.jsonl
for threads in 1 2 5; do
	expect 0 heddle data tokenize --tokenizer t.json --field text many.jsonl -o $threads.bin \
		--threads $threads -q
	cmp 1.bin $threads.bin || failed "$threads threads make another file"
done
heddle data tokenize --tokenizer t.json --field text - -o stdin.bin -q <many.jsonl || failed "stdin"
cmp 1.bin stdin.bin || failed "standard input makes another file"
echo 'left by one that was killed' >row.bin.tmp
expect 0 heddle data tokenize --tokenizer t.json --field t "$SOURCE_DIR/tests/data/rows/delta.parquet" \
	-o row.bin
says 'row.bin: 4 tokens of 16 bits, 2 documents'
same "$(ids row.bin 2)" "0 70 0 70" "rows of Parquet are documents, an empty one is none"
[ ! -e row.bin.tmp ] || failed "what a killed one left is not taken over"
passed "equal bytes on 1, 2 and 5 threads and from standard input"

cat >gpt.yaml <<'END'
job: {steps: 3}
model: {use: "builtin:gpt", args: {layers: 1, width: 16, heads: 2, context: 8, vocab: 71}}
data: {kind: tokens, path: 1.bin}
batch: {global: 4, virtual_nodes: 2}
optim: {kind: adamw, lr: 1e-3}
END
expect 0 heddle run gpt.yaml -q --out narrow
expect 0 heddle data cat gpt.yaml --count 1 --tokenizer t.json
says '"text":"w1 w7 w3 \u003c/s> w2 w14 w3 \u003c/s>"'
words 66000 >wide.json
expect 0 heddle data tokenize --tokenizer wide.json --field text many.jsonl -o wide.bin --eos w70
says 'tokens of 32 bits'
expect 0 heddle run gpt.yaml -q --out wide -s data.path=wide.bin
heddle ckpt digest wide >wide.digest
heddle ckpt digest narrow >narrow.digest
same "$(head -1 wide.digest)" "$(head -1 narrow.digest)" "the same tokens in 32 bits"
passed "a job trains on tokens of 16 and 32 bits, with the same bits"

rm -f none.bin
printf 'w1 \377' >bad.txt
expect 3 heddle data tokenize --tokenizer t.json a.txt bad.txt -o none.bin
says 'bad.txt: byte 3 (0xff) is no UTF-8'
echo '{"txt": "w1"}' >bad.jsonl
expect 3 heddle data tokenize --tokenizer t.json --field text many.jsonl bad.jsonl -o none.bin
says 'bad.jsonl line 1'
expect 3 heddle data tokenize --tokenizer t.json gone.txt -o none.bin
expect 3 heddle data tokenize --tokenizer gone.json a.txt -o none.bin
echo '{"model": {"type": "BPE", "vocab": {}}}' >short.json
expect 3 heddle data tokenize --tokenizer short.json a.txt -o none.bin
says '"merges"'
expect 2 heddle data tokenize --tokenizer t.json a.txt -o none.bin --eos nothing
says 't.json has no token "nothing"'
expect 2 heddle data tokenize a.txt -o none.bin
expect 2 heddle data tokenize --tokenizer t.json a.txt -o none.bin --threads 0
[ ! -e none.bin ] && [ ! -e none.bin.tmp ] || failed "a file is left of what was refused"
passed "what is refused is said with its place, and leaves no file"
