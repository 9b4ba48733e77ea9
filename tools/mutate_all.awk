# mutate_all.awk: one C file that is many mutants, chosen when it runs.
#
#	awk -v file=PATH -f mutate_all.awk MUTANTS PATH >OUT
#
# MUTANTS has lines of four fields parted by the byte 037: a number, the first and the last line that are
# replaced, the new text. A function with mutants gets one body for each beside its own, and hd_mutant() says
# which one runs. Errors of the compiler in a body of mutant 17 are said to be in the file `mutant.17`.
# Mutants outside of functions are left out; they are listed in `left`, if that is given.

BEGIN { FS = sprintf("%c", 31) }
FILENAME != file { n++; id[n] = $1; first[n] = $2; last[n] = $3; text[n] = $4; next }
{ line[FNR] = $0; nlines = FNR }

END {
	print "extern int hd_mutant(void);"
	where(1, file)
	for (i = 1; i <= nlines; i++) {
		if (line[i] ~ /^[a-z].*\) \{ .* \}$/) one_line(i)
		else if (line[i] == "{") i = bodies(i)
		else print line[i]
	}
	for (k = 1; k <= n; k++)
		if (!(k in used) && left != "") print id[k] >left
}

function where(at, name) { printf "#line %d \"%s\"\n", at, name }

function one_line(i,    at, k, head, body)
{
	at = index(line[i], ") { ")
	head = substr(line[i], 1, at + 2); body = substr(line[i], at + 4); sub(/ }$/, "", body)
	printf "%s", head
	for (k = 1; k <= n; k++)
		if (first[k] == i) {
			used[k] = 1
			printf "\nif (hd_mutant() == %d) {\n", id[k]
			where(i, "mutant." id[k])
			print text[k]
			printf "} else"
		}
	print "\n{"
	where(i, file)
	print body
	print "}\n}"
	where(i + 1, file)
}

# Lines from .. to with those of mutant k replaced; labels are of each block alone.
function block(from, to, k,    i, labels)
{
	for (i = from; i <= to; i++)
		if (line[i] ~ /^[\t ]*[a-z_][a-z_0-9]*:$/ && line[i] !~ /^[\t ]*default:$/) {
			labels = line[i]; gsub(/[\t :]/, "", labels)
			print "__label__ " labels ";"
		}
	where(from, k ? "mutant." id[k] : file)
	for (i = from; i <= to; i++)
		if (k && i == first[k]) print text[k]
		else if (k && i > first[k] && i <= last[k]) print ""
		else print line[i]
}

function bodies(i,    end, k, any)
{
	for (end = i + 1; end <= nlines && line[end] != "}"; end++);
	print "{"
	for (k = 1; k <= n; k++)
		if (first[k] > i && last[k] < end) {
			used[k] = any = 1
			printf "if (hd_mutant() == %d) {\n", id[k]
			block(i + 1, end - 1, k)
			print "} else"
		}
	if (any) print "{"
	block(i + 1, end - 1, 0)
	if (any) print "}"
	print "}"
	where(end + 1, file)
	return end
}
