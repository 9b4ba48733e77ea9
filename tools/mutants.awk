# mutants.awk: what could be wrong with lines of a C file, one mutant a line of output.
#
#	awk -v file=PATH -v only=OPERATORS -f mutants.awk LINES PATH
#
# LINES lists numbers of lines. Output, fields parted by the byte 037: the file, the first and the last line
# that are replaced, the operator, their text, the new text; both without indentation and comments, in one
# line.
#
#	operator  another operator of the same kind      constant  a number plus 1
#	drop      a statement that is not there          swap      two calls in a row, the other way round
#	guard     the condition of a way out never holds; that of an act always does
#	conjunct  a condition without one of its parts   negate    a condition turned round
#
# `only` names those that are wanted, parted by commas; empty: all.

FILENAME != file { wanted[$1] = 1; next }
{ line[FNR] = $0; n = FNR }

END {
	SEP = sprintf("%c", 31)
	# two of them do the same in either order
	MEMORY = "(memset|memcpy|memmove|hd_alloc|hd_arena_take|hd_free|_finish)\\("
	npairs = split(" < \001 <= \001 <= \001 < \001 > \001 >= \001 >= \001 > " \
		"\001 == \001 != \001 != \001 == \001 + \001 - \001 - \001 + \001 * \001 + " \
		"\001 && \001 || \001 || \001 && \001 += \001 -= \001 -= \001 += " \
		"\001++\001--\001<<\001>>", pair, "\001")
	for (at = 1; at <= n; at++)
		if (at in wanted && line[at] ~ /^(\t|[a-z].*\) \{ .* \}$)/ && line[at] !~ /^\t*(\/\*|\*)/)
			mutate()
}

# Of a function in one line its body.
function strip(text)
{
	if (text ~ /^[a-z].*\) \{ .* \}$/) {
		text = substr(text, index(text, ") { ") + 4)
		sub(/ }$/, "", text)
		return text
	}
	sub(/^[ \t]+/, "", text)
	sub(/[ \t]*\/\*.*\*\/[ \t]*$/, "", text)
	return text
}

function indent(text)
{
	match(text, /^\t*/)
	return RLENGTH
}

function out(op, last, old, new)
{
	if (new == old || (only != "" && index("," only ",", "," op ",") == 0) || seen[at, last, new]++)
		return
	printf "%s%s%d%s%d%s%s%s%s%s%s\n", file, SEP, at, SEP, last, SEP, op, SEP, old, SEP, new
}

function mutate(    text, i)
{
	text = strip(line[at])
	for (i = 1; i < npairs; i += 2)
		other_operator(text, pair[i], pair[i + 1])
	constants(text)
	statement(text)
	if (text ~ /^(} )?(else )?(if|while|for) \(/)
		condition(text)
	else if (text ~ /(^return |[^=!<>]= |[|&]= )/)
		chain_of(text)
	swaps(text)
}

function other_operator(text, old, new,    from, i)
{
	for (from = 1; (i = index(substr(text, from), old)) > 0; from = i + length(old)) {
		i += from - 1
		out("operator", at, text, substr(text, 1, i - 1) new substr(text, i + length(old)))
	}
}

function constants(text,    rest, from, start, number)
{
	from = 1
	while (match(substr(text, from), /(^|[^a-zA-Z0-9_."%])[0-9]+([^a-zA-Z0-9_.x"]|$)/)) {
		rest = substr(text, from + RSTART - 1); start = from + RSTART - 1
		start += match(rest, /[0-9]/) - 1
		number = substr(text, start); sub(/[^0-9].*/, "", number)
		out("constant", at, text,
			substr(text, 1, start - 1) (number + 1) substr(text, start + length(number)))
		from = start + length(number)
	}
}

# The text from line `at` on until its parentheses are closed and, if that is asked for, it ends in a
# semicolon. Sets `last`.
function gather(semicolon,    text, more, depth, i, c, quote)
{
	text = ""
	for (last = at; last <= n && last < at + 12; last++) {
		more = strip(line[last])
		text = text (text == "" ? "" : " ") more
		for (i = 1; i <= length(more); i++) {
			c = substr(more, i, 1)
			if (quote != "") {
				if (c == "\\") i++
				else if (c == quote) quote = ""
			} else if (c == "\"" || c == "'") quote = c
			else if (c == "(") depth++
			else if (c == ")") depth--
		}
		if (depth <= 0 && (!semicolon || text ~ /;$/))
			return text
	}
	return ""
}

function is_call_or_assignment(text)
{
	return text ~ /^[a-z_*(][a-zA-Z0-9_.>\[\]()* \/%+-]* ?([-+*|&^]?=|<<=|>>=|\(|\+\+|--)/ &&
		text !~ /^(return|goto|break|continue|if|else|for|while|do|switch)[^a-zA-Z0-9_]/ &&
		text !~ /^(case|default|assert|static|typedef)[^a-zA-Z0-9_]/ &&
		text !~ /^(const |unsigned |struct |enum )/ &&
		text !~ /^[a-z_0-9]+ [*]*[a-zA-Z_0-9]+(\[[^\]]*\])*( =|;|,)/
}

function statement(text)
{
	if (!is_call_or_assignment(text) || text ~ /[{}]$/)
		return
	if (text !~ /;$/ && (text = gather(1)) == "")
		return
	out("drop", text ~ /;$/ && strip(line[at]) == text ? at : last, text, "(void)0;")
}

# Where the parenthesis that opens at `i` of text closes.
function closing(text, i,    depth, c, quote)
{
	for (; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (quote != "") {
			if (c == "\\") i++
			else if (c == quote) quote = ""
		} else if (c == "\"" || c == "'") quote = c
		else if (c == "(") depth++
		else if (c == ")" && --depth == 0) return i
	}
	return 0
}

# Does what follows line `last` leave: return, goto, break, continue; at once, or at the end of its block?
function leaves(text,    i, depth)
{
	if (text !~ /\{$/)
		return strip(line[last + 1]) ~ /^(return|goto|break|continue)[^a-zA-Z0-9_]/
	depth = indent(line[at])
	for (i = last + 1; i <= n && indent(line[i]) > depth; i++)
		if (indent(line[i]) == depth + 1 && strip(line[i + 1]) ~ /^}/)
			return strip(line[i]) ~ /^(return|goto|break|continue)[^a-zA-Z0-9_]/
	return 0
}

function condition(text,    open, close_at, head, cond, tail, i, depth, c, first, never)
{
	text = gather(0)
	open = index(text, "(")
	close_at = text == "" ? 0 : closing(text, open)
	if (!close_at)
		return
	head = substr(text, 1, open)
	cond = substr(text, open + 1, close_at - open - 1)
	tail = substr(text, close_at)
	if (text ~ /^(} )?(else )?for \(/) {
		depth = 0; first = 0
		for (i = 1; i <= length(cond); i++) {
			c = substr(cond, i, 1)
			if (c == "(") depth++
			else if (c == ")") depth--
			else if (c == ";" && depth == 0 && !first) first = i
			else if (c == ";" && depth == 0) {
				head = head substr(cond, 1, first)
				tail = substr(cond, i) tail
				cond = substr(cond, first + 1, i - first - 1)
				break
			}
		}
		operands(text, head, cond, tail)
		return
	}
	operands(text, head, cond, tail)
	if (text ~ /^(} )?(else )?if \(/) {
		never = leaves(text) || tail ~ /(return|goto|break|continue)[^;]*;$/
		out("guard", last, text, head (never ? "0" : "1") tail)
		out("negate", last, text, head "!(" cond ")" tail)
	}
}

function chain_of(text)
{
	if (text ~ /[{}]$/)
		return
	text = gather(1)
	if (text != "")
		operands(text, "", text, "")
}

# Each part of each chain of && and || in cond, also within parentheses, left out once.
function operands(text, head, cond, tail,    i, c, two, quote, depth, start, parts, joint)
{
	start[0] = 1; joint[0] = 0; depth = 0
	for (i = 1; i <= length(cond) + 1; i++) {
		c = i > length(cond) ? ";" : substr(cond, i, 1); two = substr(cond, i, 2)
		if (quote != "") {
			if (c == "\\") i++
			else if (c == quote) quote = ""
			continue
		}
		if (c == "\"" || c == "'") { quote = c; continue }
		if (two == "&&" || two == "||") {
			without(text, head, cond, tail, start[depth], i - 1, joint[depth], 1)
			joint[depth] = i; start[depth] = i + 2; i++
		} else if (c == "(") {
			depth++; start[depth] = i + 1; joint[depth] = 0
		} else if (c == ")" || c == ";" || c == "?" || c == ":" || c == ",") {
			if (joint[depth])
				without(text, head, cond, tail, start[depth], i - 1, joint[depth], 0)
			if (c == ")" && depth > 0) depth--
			else { start[depth] = i + 1; joint[depth] = 0 }
		} else if (c == "=" && two != "==" && substr(cond, i - 1, 1) !~ /[=!<>]/) {
			start[depth] = i + 1; joint[depth] = 0
		} else if (substr(cond, i, 7) == "return " &&
			(i == 1 || substr(cond, i - 1, 1) !~ /[a-zA-Z0-9_]/)) {
			start[depth] = i + 7; joint[depth] = 0; i += 6
		}
	}
}

# cond without what stands from a to b; joint: where the operator before it is, 0: none; more: one follows.
function without(text, head, cond, tail, a, b, joint, more,    new)
{
	while (substr(cond, a, 1) == " ") a++
	if (joint) {
		new = substr(cond, 1, joint - 1) substr(cond, b + 1)
		sub(/ +$/, "", new)
	} else {
		new = substr(cond, 1, a - 1) substr(cond, b + 4)
	}
	gsub(/  +/, " ", new)
	gsub(/ \)/, ")", new)
	gsub(/ ;/, ";", new)
	out("conjunct", last, text, head new tail)
}

function swaps(text,    next_text)
{
	next_text = strip(line[at + 1])
	if (indent(line[at]) != indent(line[at + 1]) || text !~ /;$/ || next_text !~ /;$/ ||
		strip(line[at - 1]) !~ /([;{}:]|^)$/)
		return
	if (is_call_or_assignment(text) && is_call_or_assignment(next_text) &&
		text ~ /[a-z_]\(/ && next_text ~ /[a-z_]\(/ &&
	    !(text ~ MEMORY && next_text ~ MEMORY))
		out("swap", at + 1, text " " next_text, next_text " " text)
}
