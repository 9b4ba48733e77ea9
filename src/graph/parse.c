#include "graph/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "graph/op.h"
#include "graph/verify.h"

enum { MAX_LABELS = HD_MAX_NODES * HD_MAX_OUT, MAX_WORD = HD_MAX_NAME };

/* Labels and names both lead to values; HD_NONE in a slot: empty. */
struct labels { uint32_t *at, cap; };
struct names  { uint32_t *slot, cap, n; };        /* open addressing, cap a power of two */

struct word { const char *at; size_t len; };      /* len 0: the end of the line */

struct parser {
	struct hd_graph *graph;
	const char *file;
	const char *at, *end, *line_at;
	uint32_t line;
	struct word word;                          /* the one at hand */
	struct labels temps, consts;
	struct names names;
	struct hd_diag *diag;
};

/* Says file:line:column of the word at hand. */
__attribute__((format(printf, 2, 3)))
static enum hd_err syntax(struct parser *p, const char *fmt, ...)
{
	char text[sizeof p->diag->text / 2];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return hd_fail(p->diag, HD_E_INPUT, "%s:%u:%zu: %s", p->file, p->line, (size_t)(p->word.at - p->line_at) + 1, text);
}

/* A builder refused: its reason at our place. Only the lack of memory keeps its code. */
static enum hd_err refused(struct parser *p, enum hd_err err, const struct hd_diag *why)
{
	if (err == HD_OK || err == HD_E_NOMEM)
		return err == HD_OK ? HD_OK : hd_fail(p->diag, err, "%s", why->text);
	return syntax(p, "%s", why->text);
}

/* Words are runs of other bytes than blanks and the marks , [ ] = : which stand alone. */
static bool is_mark(char c) { return c == ',' || c == '[' || c == ']' || c == '=' || c == ':'; }

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void next(struct parser *p)
{
	const char *at = p->at;

	while (at < p->end && is_blank(*at))
		at++;
	p->word = (struct word){ at, 0 };
	if (at < p->end && *at != '\n' && *at != '#') {
		if (is_mark(*at))
			at++;
		else
			while (at < p->end && *at != '\n' && !is_blank(*at) && !is_mark(*at))
				at++;
	}
	p->word.len = (size_t)(at - p->word.at);
	p->at = at;
}

static bool is(const struct parser *p, const char *text)
{
	return p->word.len == strlen(text) && memcmp(p->word.at, text, p->word.len) == 0;
}

static bool ended(const struct parser *p) { return p->word.len == 0; }

static int shown(const struct parser *p) { return p->word.len < 40 ? (int)p->word.len : 40; }

static enum hd_err expect(struct parser *p, const char *mark)
{
	if (!is(p, mark))
		return syntax(p, "'%s' is missing here%s%.*s%s", mark, ended(p) ? "" : " (before '", shown(p), p->word.at, ended(p) ? "" : "')");
	next(p);
	return HD_OK;
}

/* The word at hand, ended by 0, and on to the next. */
static enum hd_err take_word(struct parser *p, char out[MAX_WORD], const char *what)
{
	if (ended(p) || (p->word.len == 1 && is_mark(p->word.at[0])))
		return syntax(p, "%s is missing here", what);
	if (p->word.len >= MAX_WORD || memchr(p->word.at, 0, p->word.len))
		return syntax(p, "%s: at most %d bytes, none of them 0", what, MAX_WORD - 1);
	memcpy(out, p->word.at, p->word.len);
	out[p->word.len] = '\0';
	next(p);
	return HD_OK;
}

/* Numbers go through a word of their own so that the C library never reads past the text. The
 * message points at the number, so the word is only left when it is good. */
static enum hd_err take_integer(struct parser *p, int64_t min, int64_t max, int64_t *out)
{
	char text[32], *end;

	if (ended(p) || p->word.len >= sizeof text || is_mark(p->word.at[0]))
		return syntax(p, "a whole number is missing here");
	memcpy(text, p->word.at, p->word.len);
	text[p->word.len] = '\0';
	errno = 0;
	long long n = strtoll(text, &end, 10);
	bool digits = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && text[1] >= '0' && text[1] <= '9');
	if (!digits || *end || errno || n < min || n > max)
		return syntax(p, "'%s' is no whole number from %lld to %lld", text, (long long)min, (long long)max);
	*out = n;
	next(p);
	return HD_OK;
}

/* strtof and not a narrowed double: what was printed with the fewest digits must read back to the same bits. */
static enum hd_err take_real(struct parser *p, bool single, double *out)
{
	char text[48], *end = text;

	if (ended(p) || p->word.len >= sizeof text || is_mark(p->word.at[0]))
		return syntax(p, "a number is missing here");
	memcpy(text, p->word.at, p->word.len);
	text[p->word.len] = '\0';
	bool words = strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0;
	if (words || strspn(text, "0123456789+-.eE") == p->word.len)
		*out = single ? (double)strtof(text, &end) : strtod(text, &end);
	if (end == text || *end)
		return syntax(p, "'%s' is no number", text);
	next(p);
	return HD_OK;
}

static enum hd_err no_memory(struct parser *p)
{
	return hd_fail(p->diag, HD_E_NOMEM, "%s: no memory for a graph of this size", p->file);
}

static enum hd_err label_set(struct parser *p, struct labels *labels, uint32_t label, uint32_t value)
{
	if (label >= labels->cap) {
		uint32_t cap = labels->cap ? labels->cap : 256;
		while (cap <= label)
			cap *= 2;
		uint32_t *at = hd_arena_take(p->graph->arena, cap, sizeof *at);
		if (!at)
			return no_memory(p);
		if (labels->cap)
			memcpy(at, labels->at, labels->cap * sizeof *at);
		memset(at + labels->cap, 0xff, (cap - labels->cap) * sizeof *at);
		*labels = (struct labels){ at, cap };
	}
	if (labels->at[label] != HD_NONE)
		return syntax(p, "this label is made twice");
	labels->at[label] = value;
	return HD_OK;
}

static uint32_t *name_slot(const struct parser *p, const char *name)
{
	const struct names *names = &p->names;
	uint32_t at = (uint32_t)hd_hash64(name, strlen(name)) & (names->cap - 1);

	while (names->slot[at] != HD_NONE && strcmp(hd_graph_text_of(p->graph, p->graph->value[names->slot[at]].name), name) != 0)
		at = (at + 1) & (names->cap - 1);
	return &names->slot[at];
}

static enum hd_err name_add(struct parser *p, uint32_t value)
{
	struct names *names = &p->names;

	if (2 * names->n >= names->cap) {
		uint32_t cap = names->cap ? 2 * names->cap : 256, *old = names->slot, nold = names->cap;
		names->slot = hd_arena_take(p->graph->arena, cap, sizeof *names->slot);
		if (!names->slot)
			return no_memory(p);
		memset(names->slot, 0xff, cap * sizeof *names->slot);
		names->cap = cap;
		for (uint32_t i = 0; i < nold; i++)
			if (old[i] != HD_NONE)
				*name_slot(p, hd_graph_text_of(p->graph, p->graph->value[old[i]].name)) = old[i];
	}
	*name_slot(p, hd_graph_text_of(p->graph, p->graph->value[value].name)) = value;
	names->n++;
	return HD_OK;
}

/* The number of a label word like %12; the word stays at hand. */
static enum hd_err label_number(struct parser *p, char sign, uint32_t *label)
{
	uint32_t n = 0;

	if (ended(p) || p->word.at[0] != sign || p->word.len < 2 || p->word.len > 8)
		return syntax(p, "a label like %c0 is missing here", sign);
	for (size_t i = 1; i < p->word.len; i++) {
		if (p->word.at[i] < '0' || p->word.at[i] > '9')
			return syntax(p, "'%.*s': a label is %c and a number", shown(p), p->word.at, sign);
		n = n * 10 + (uint32_t)(p->word.at[i] - '0');
	}
	if (n >= MAX_LABELS)
		return syntax(p, "labels go up to %c%d", sign, MAX_LABELS - 1);
	*label = n;
	return HD_OK;
}

static enum hd_err take_value(struct parser *p, uint32_t *value)
{
	char name[MAX_WORD];
	uint32_t label, found = HD_NONE;
	struct parser here = *p;
	enum hd_err err;

	if (!ended(p) && (p->word.at[0] == '%' || p->word.at[0] == '$')) {
		const struct labels *labels = p->word.at[0] == '%' ? &p->temps : &p->consts;
		err = label_number(p, p->word.at[0], &label);
		if (err != HD_OK)
			return err;
		if (label < labels->cap)
			found = labels->at[label];
		next(p);
	} else {
		err = take_word(p, name, "a value");
		if (err != HD_OK)
			return err;
		if (p->names.cap)
			found = *name_slot(p, name);
	}
	if (found == HD_NONE)
		return syntax(&here, "'%.*s' is not made before this line", shown(&here), here.word.at);
	*value = found;
	return HD_OK;
}

/* "f32 [*,3*,8]" */
static enum hd_err take_type(struct parser *p, enum hd_dtype *dtype, uint8_t *rank, int64_t dim[HD_MAX_DIMS])
{
	char word[MAX_WORD];
	enum hd_err err = take_word(p, word, "a dtype");

	if (err == HD_OK && !hd_dtype_parse(word, dtype))
		return syntax(p, "'%s' before this is no dtype (f32 f64 i32 i64 u8)", word);
	if (err == HD_OK)
		err = expect(p, "[");
	for (*rank = 0; err == HD_OK; (*rank)++) {
		int64_t n = -1;
		if (*rank == HD_MAX_DIMS)
			return syntax(p, "a value has at most %d extents", HD_MAX_DIMS);
		bool rows = !ended(p) && p->word.at[p->word.len - 1] == '*';
		if (rows && p->word.len == 1) {
			next(p);
		} else {
			p->word.len -= rows;
			p->at -= rows;
			err = take_integer(p, 1, HD_MAX_EXTENT, &n);
			if (err == HD_OK && rows) {
				n = -n;
				next(p);
			}
		}
		dim[*rank] = n;
		if (err == HD_OK && is(p, "]")) {
			(*rank)++;
			break;
		}
		if (err == HD_OK)
			err = expect(p, ",");
	}
	return err == HD_OK ? expect(p, "]") : err;
}

static enum hd_err parse_graph(struct parser *p)
{
	char name[MAX_WORD];
	struct hd_diag why = { "" };
	enum hd_err err = take_word(p, name, "the name of the graph");

	if (err == HD_OK && p->graph->name != HD_NONE)
		return syntax(p, "the graph has a name already");
	if (err == HD_OK)
		err = refused(p, hd_graph_name(p->graph, name, &p->graph->name, &why), &why);
	return err;
}

static enum hd_err parse_input(struct parser *p)
{
	char name[MAX_WORD];
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS];
	enum hd_dtype dtype;
	uint8_t rank;
	uint32_t value;
	enum hd_err err = take_word(p, name, "the name of the input");

	if (err == HD_OK)
		err = take_type(p, &dtype, &rank, dim);
	if (err == HD_OK)
		err = refused(p, hd_graph_input(p->graph, name, dtype, rank, dim, &value, &why), &why);
	return err == HD_OK ? name_add(p, value) : err;
}

static enum hd_err take_init(struct parser *p, enum hd_init_kind *init, float *scale)
{
	static const struct { const char *text; enum hd_init_kind init; } inits[] = {
#define X(id, text, about) { text, HD_INIT_##id },
		HD_INITS(X)
#undef X
	};
	double real = 0;
	size_t i = 0;

	while (i < sizeof inits / sizeof inits[0] && !is(p, inits[i].text))
		i++;
	if (i == sizeof inits / sizeof inits[0])
		return syntax(p, "the initial value is missing here: zeros, ones, normal D or uniform BOUND");
	next(p);
	*init = inits[i].init;
	if (*init == HD_INIT_NORMAL || *init == HD_INIT_UNIFORM) {
		struct parser here = *p;
		enum hd_err err = take_real(p, true, &real);
		if (err != HD_OK)
			return err;
		if (!(real >= 0 && real <= 3e38))
			return syntax(&here, "the scale of an initial value is finite and not negative");
	}
	*scale = (float)real;
	return HD_OK;
}

static enum hd_err parse_param(struct parser *p)
{
	char name[MAX_WORD];
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS];
	enum hd_dtype dtype = HD_F32;
	enum hd_init_kind init = HD_INIT_ZEROS;
	uint8_t rank = 0;
	uint32_t value;
	float scale = 0;
	enum hd_err err = take_word(p, name, "the name of the parameter");

	if (err == HD_OK)
		err = take_type(p, &dtype, &rank, dim);
	if (err == HD_OK && dtype != HD_F32)
		return syntax(p, "parameters are f32");
	if (err == HD_OK)
		err = take_init(p, &init, &scale);
	if (err == HD_OK)
		err = refused(p, hd_graph_param(p->graph, name, rank, dim, init, scale, &value, &why), &why);
	return err == HD_OK ? name_add(p, value) : err;
}

static enum hd_err take_number(struct parser *p, enum hd_dtype dtype, uint64_t i, uint8_t *data)
{
	double real = 0;
	int64_t n = 0;
	bool reals = dtype == HD_F32 || dtype == HD_F64;
	int64_t min = dtype == HD_I64 ? INT64_MIN : dtype == HD_I32 ? INT32_MIN : 0;
	int64_t max = dtype == HD_I64 ? INT64_MAX : dtype == HD_I32 ? INT32_MAX : UINT8_MAX;
	enum hd_err err = reals ? take_real(p, dtype == HD_F32, &real) : take_integer(p, min, max, &n);

	if (err != HD_OK)
		return err;
	size_t size = hd_dtype_bytes(dtype);
	float single = (float)real;
	int32_t narrow = (int32_t)n;
	uint8_t byte = (uint8_t)n;
	const void *from[] = { [HD_F32] = &single, [HD_F64] = &real, [HD_I32] = &narrow, [HD_I64] = &n, [HD_U8] = &byte };
	memcpy(data + i * size, from[dtype], size);
	return HD_OK;
}

static enum hd_err parse_const(struct parser *p)
{
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS], n = 0;
	enum hd_dtype dtype = HD_F32;
	uint8_t rank, *data = NULL;
	uint32_t label, value;
	enum hd_err err = label_number(p, '$', &label);

	if (err == HD_OK) {
		next(p);
		err = take_type(p, &dtype, &rank, dim);
	}
	if (err != HD_OK)
		return err;
	n = hd_dims_product(dim, rank);
	/* every element takes two bytes of text at least: a short line cannot ask for much memory */
	if (n <= 0 || n > (p->end - p->word.at) / 2 + 1)
		return syntax(p, "a constant does not grow with the rows and is written out in full");
	data = hd_arena_take(p->graph->arena, (size_t)n, hd_dtype_bytes(dtype));
	if (!data)
		return no_memory(p);
	for (int64_t i = 0; i < n && err == HD_OK; i++)
		err = take_number(p, dtype, (uint64_t)i, data);
	if (err == HD_OK)
		err = refused(p, hd_graph_const(p->graph, dtype, rank, dim, data, &value, &why), &why);
	return err == HD_OK ? label_set(p, &p->consts, label, value) : err;
}

/* What a node line says besides operands; HD_NONE: not said. */
struct said { struct hd_attr attr; uint32_t key, stage, of; uint8_t phase; };

static enum hd_err take_attr(struct parser *p, uint16_t op, const char *name, struct said *said)
{
	struct hd_attr_name attr;
	char word[MAX_WORD];
	int64_t n = 0;
	double real = 0;
	int act = 0;
	uint32_t i = 0;
	struct parser here = *p;
	enum hd_err err;

	while (hd_op_attr(op, i, &attr) && strcmp(attr.at, name) != 0)
		i++;
	if (!hd_op_attr(op, i, &attr))
		return syntax(p, "%s has no attribute '%s'", hd_ops[op].name, name);
	if (attr.is_float) {
		err = take_real(p, true, &real);
		said->attr.f[attr.slot] = (float)real;
	} else if (hd_attr_is_act(&attr)) {
		err = take_word(p, word, "an activation");
		if (err == HD_OK && !hd_act_parse(word, &act))
			return syntax(&here, "'%s' is no activation", word);
		said->attr.i[attr.slot] = act;
	} else {
		err = take_integer(p, INT32_MIN, INT32_MAX, &n);
		said->attr.i[attr.slot] = (int32_t)n;
	}
	return err;
}

static enum hd_err take_setting(struct parser *p, uint16_t op, struct said *said)
{
	char name[MAX_WORD];
	int64_t n;
	enum hd_err err = take_word(p, name, "an attribute");

	if (err == HD_OK)
		err = expect(p, "=");
	if (err != HD_OK)
		return err;
	if (strcmp(name, "key") == 0 && hd_ops[op].class == HD_OP_RANDOM) {
		err = take_integer(p, 0, HD_MAX_NODES - 1, &n);
		said->key = err == HD_OK ? (uint32_t)n : 0;
	} else if (strcmp(name, "stage") == 0) {
		err = take_integer(p, 0, HD_MAX_STAGES - 1, &n);
		said->stage = err == HD_OK ? (uint32_t)n : 0;
	} else if (strcmp(name, "phase") == 0) {
		if (!is(p, "I") && !is(p, "W"))
			return syntax(p, "the phase is I or W; forward nodes have none");
		said->phase = is(p, "I") ? HD_PHASE_I : HD_PHASE_W;
		next(p);
	} else if (strcmp(name, "of") == 0) {
		struct parser here = *p;
		err = take_value(p, &said->of);
		if (err == HD_OK && p->graph->value[said->of].kind != HD_TEMP)
			return syntax(&here, "'of' names an output of the forward node");
	} else {
		err = take_attr(p, op, name, said);
	}
	return err;
}

/* Given shapes must agree with those derived. */
static enum hd_err check_types(struct parser *p, const struct hd_node *node)
{
	enum hd_err err = HD_OK;

	if (ended(p))
		return HD_OK;
	for (uint32_t k = 0; k < node->nout && err == HD_OK; k++) {
		struct hd_value given = { 0 };
		enum hd_dtype dtype = HD_F32;
		err = expect(p, k ? "," : ":");
		struct parser here = *p;
		if (err == HD_OK)
			err = take_type(p, &dtype, &given.rank, given.dim);
		given.dtype = (uint8_t)dtype;
		const struct hd_value *v = &p->graph->value[node->out + k];
		if (err == HD_OK && (given.dtype != v->dtype || !hd_dims_same(&given, v)))
			err = syntax(&here, "output %u is %s by the rule of %s, not %s", k, hd_value_shape(v).at, hd_ops[node->op].name,
				hd_value_shape(&given).at);
	}
	return err;
}

static enum hd_err node_settle(struct parser *p, const struct said *said)
{
	struct hd_graph *graph = p->graph;
	struct hd_node *node = &graph->node[graph->nnodes - 1];

	node->phase = said->phase;
	if (said->of != HD_NONE)
		node->of = graph->value[said->of].node;
	if (hd_ops[node->op].class != HD_OP_RANDOM)
		return HD_OK;
	if (node->of != HD_NONE) {
		graph->nrandom--;
		node->key = graph->node[node->of].key;
	}
	if (said->key != HD_NONE)
		node->key = said->key;
	if (node->of == HD_NONE && node->key >= graph->nrandom)
		graph->nrandom = node->key + 1;
	return HD_OK;
}

static enum hd_err parse_node(struct parser *p)
{
	struct said said = { .key = HD_NONE, .of = HD_NONE, .phase = HD_PHASE_F };
	uint32_t label[HD_MAX_OUT], in[HD_MAX_IN], nlabels = 0, out = 0;
	struct hd_diag why = { "" };
	struct parser start;
	char word[MAX_WORD];
	uint16_t op = 0;
	enum hd_err err;

	do {
		if (nlabels == HD_MAX_OUT)
			return syntax(p, "a node has at most %d outputs", HD_MAX_OUT);
		if (nlabels)
			next(p);
		err = label_number(p, '%', &label[nlabels++]);
		if (err != HD_OK)
			return err;
		next(p);
	} while (is(p, ","));
	err = expect(p, "=");
	start = *p;
	if (err == HD_OK)
		err = take_word(p, word, "an op");
	if (err == HD_OK && !hd_op_parse(word, &op))
		return syntax(&start, "there is no op '%s'", word);
	if (err == HD_OK && nlabels != hd_ops[op].nout)
		return syntax(&start, "%s makes %u values, not %u", word, hd_ops[op].nout, nlabels);
	for (uint8_t k = 0; k < hd_ops[op].nin && err == HD_OK; k++)
		err = take_value(p, &in[k]);
	while (err == HD_OK && !ended(p) && !is(p, ":"))
		err = take_setting(p, op, &said);
	if (err == HD_OK)
		err = refused(&start, hd_graph_node(p->graph, op, hd_ops[op].nin, in, &said.attr, (uint16_t)said.stage, &out, &why), &why);
	if (err == HD_OK)
		err = node_settle(p, &said);
	if (err == HD_OK)
		err = check_types(p, &p->graph->node[p->graph->nnodes - 1]);
	for (uint32_t k = 0; k < nlabels && err == HD_OK; k++)
		err = label_set(p, &p->temps, label[k], out + k);
	return err;
}

static enum hd_err parse_output(struct parser *p)
{
	char name[MAX_WORD];
	struct hd_diag why = { "" };
	uint32_t value;
	enum hd_err err = take_word(p, name, "the name of the output");

	if (err == HD_OK)
		err = take_value(p, &value);
	return err == HD_OK ? refused(p, hd_graph_output(p->graph, name, value, &why), &why) : err;
}

static enum hd_err parse_grad(struct parser *p)
{
	struct parser here = *p;
	uint32_t param = 0, grad = 0;
	enum hd_err err = take_value(p, &param);

	if (err == HD_OK)
		err = take_value(p, &grad);
	if (err != HD_OK)
		return err;
	if (p->graph->value[param].kind != HD_PARAM || p->graph->value[param].grad != HD_NONE)
		return syntax(&here, "a gradient is given once, to a parameter");
	p->graph->value[param].grad = grad;
	return HD_OK;
}

static enum hd_err parse_line(struct parser *p)
{
	static const struct { const char *word; enum hd_err (*parse)(struct parser *); } statements[] = {
		{ "graph", parse_graph }, { "input", parse_input }, { "param", parse_param },
		{ "const", parse_const }, { "output", parse_output }, { "grad", parse_grad },
	};
	enum hd_err err;
	size_t i = 0;

	next(p);
	if (ended(p))
		return HD_OK;
	if (p->word.at[0] == '%') {
		err = parse_node(p);
	} else {
		while (i < sizeof statements / sizeof statements[0] && !is(p, statements[i].word))
			i++;
		if (i == sizeof statements / sizeof statements[0])
			return syntax(p, "'%.*s': a line begins with graph, input, param, const, output, grad or a label like %%0", shown(p), p->word.at);
		next(p);
		err = statements[i].parse(p);
	}
	if (err == HD_OK && !ended(p))
		err = syntax(p, "'%.*s' is too much on this line", shown(p), p->word.at);
	return err;
}

/* Phases may have come in any order so far; the verifier wants forward nodes first and says who is not. */
static void count_forward(struct hd_graph *graph)
{
	graph->nforward = 0;
	while (graph->nforward < graph->nnodes && graph->node[graph->nforward].phase == HD_PHASE_F)
		graph->nforward++;
}

enum hd_err hd_graph_parse(struct hd_graph *graph, const char *file, const char *text, size_t len, struct hd_diag *diag)
{
	struct hd_diag spare = { "" }, why = { "" };
	struct parser p = { .graph = graph, .file = file, .at = text, .end = text + len, .line_at = text, .line = 1,
		.diag = diag ? diag : &spare };
	enum hd_err err = HD_OK;

	if (len > HD_MAX_GRAPH_TEXT)
		return hd_fail(diag, HD_E_INPUT, "%s: %zu bytes, a graph has at most %d", file, len, HD_MAX_GRAPH_TEXT);
	while (err == HD_OK) {
		err = parse_line(&p);
		while (p.at < p.end && *p.at != '\n')
			p.at++;
		if (p.at == p.end)
			break;
		p.line_at = ++p.at;
		p.line++;
	}
	if (err != HD_OK)
		return err;
	count_forward(graph);
	if (hd_graph_verify(graph, 1, &why) != HD_OK)
		return hd_fail(diag, HD_E_INPUT, "%s: %s", file, why.text);
	return HD_OK;
}
