/* graph.txt of the PipeDream program, one line a node or an edge:
 *
 *	node4 -- Embedding(32320, 1024) -- forward_compute_time=0.073, backward_compute_time=6.949,
 *	activation_size=6291456.0, parameter_size=132382720.000
 *		node4 -- node5
 *
 * The separator is " -- ", an edge begins with a tab, a node may end with " -- stage_id=3". Times are
 * milliseconds, of which whole microseconds are kept; activation_size is a number or "[a; b; c]". Edges
 * may stand before their nodes: the nodes are read first. */
#include "cost/profile.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "cost/int.h"

#define NS_PER_US 1000
#define US_PER_MS 1000.0
#define MS_MAX 9007199254.0                       /* 2^53 ns */

enum { NUMBER_CAP = 64, FIELDS_MAX = 4, QUOTED = 80 };

struct text_slice { const char *at; size_t len; };

struct import_reader {
	struct hd_profile *p;
	const char *next, *end, *file;
	struct text_slice line;
	uint32_t nline, *line_of;                 /* [nnodes] */
	struct hd_profile_ids ids;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

#define QUOTE(s) (int)((s).len < QUOTED ? (s).len : QUOTED), (s).at
#define REFUSE(r, fmt, ...) hd_fail((r)->diag, HD_E_INPUT, "%s:%u: " fmt, (r)->file, (r)->nline, __VA_ARGS__)

static bool begins(struct text_slice s, const char *word) { return s.len >= strlen(word) &&
	!memcmp(s.at, word, strlen(word)); }

static bool blank(struct text_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] != ' ' && s.at[i] != '\t')
			return false;
	return true;
}

/* The next line that is not blank. */
static bool next_line(struct import_reader *r)
{
	while (r->next < r->end) {
		const char *feed = memchr(r->next, '\n', (size_t)(r->end - r->next)),
			*stop = feed ? feed : r->end;
		r->line = (struct text_slice){ r->next, (size_t)(stop - r->next) };
		r->next = feed ? feed + 1 : r->end;
		r->nline++;
		if (r->line.len && r->line.at[r->line.len - 1] == '\r')
			r->line.len--;
		if (!blank(r->line))
			return true;
	}
	return false;
}

static bool is_text(struct text_slice s)
{
	while (s.len) {
		size_t n = *s.at ? hd_utf8_len(s.at, s.len) : 0;
		if (!n)
			return false;
		s = (struct text_slice){ s.at + n, s.len - n };
	}
	return true;
}

static void rewind_to(struct import_reader *r, const char *text)
{
	r->next = text;
	r->nline = 0;
}

/* Takes what stands before `mark`, or all of it. False: nothing is left. */
static bool cut(struct text_slice *rest, const char *mark, struct text_slice *out)
{
	size_t n = strlen(mark);

	if (!rest->at)
		return false;
	for (size_t i = 0; i + n <= rest->len; i++)
		if (!memcmp(rest->at + i, mark, n)) {
			*out = (struct text_slice){ rest->at, i };
			*rest = (struct text_slice){ rest->at + i + n, rest->len - i - n };
			return true;
		}
	*out = *rest;
	*rest = (struct text_slice){ NULL, 0 };
	return true;
}

static uint32_t fields(struct text_slice line, const char *mark, struct text_slice out[FIELDS_MAX + 1])
{
	uint32_t n = 0;

	while (n <= FIELDS_MAX && cut(&line, mark, &out[n]))
		n++;
	return n;
}

static enum hd_err number(struct import_reader *r, const char *what, struct text_slice s, double max,
	double *out)
{
	char text[NUMBER_CAP];
	struct hd_diag why = { "" };

	if (s.len >= sizeof text || memchr(s.at, 0, s.len))
		return REFUSE(r, "%s is not a number: '%.*s'", what, QUOTE(s));
	memcpy(text, s.at, s.len);
	text[s.len] = 0;
	if (hd_num_f64(text, 0, max, out, &why))
		return REFUSE(r, "%s: %s", what, why.text);
	return HD_OK;
}

static enum hd_err whole_bytes(struct import_reader *r, const char *what, struct text_slice s, int64_t *out)
{
	double v;
	enum hd_err err = number(r, what, s, (double)HD_PROFILE_SUM_MAX, &v);

	if (!err && v != floor(v))
		err = REFUSE(r, "%s is '%.*s': bytes are whole", what, QUOTE(s));
	if (!err)
		*out = (int64_t)v;
	return err;
}

static enum hd_err time_us(struct import_reader *r, const char *what, struct text_slice s, int64_t *out_us)
{
	double ms;
	enum hd_err err = number(r, what, s, MS_MAX, &ms);

	if (!err)
		*out_us = (int64_t)llround(ms * US_PER_MS);
	return err;
}

static enum hd_err activations(struct import_reader *r, struct text_slice s, struct hd_profile_node *node)
{
	bool list = s.len && s.at[0] == '[';
	struct text_slice rest = s, one;
	uint32_t n = 1;

	if (list && s.at[s.len - 1] != ']')
		return REFUSE(r, "activation_size lacks its ']': '%.*s'", QUOTE(s));
	if (list)
		rest = (struct text_slice){ s.at + 1, s.len - 2 };
	for (size_t i = 0; i < rest.len; i++)
		n += rest.at[i] == ';';
	if (n > HD_PROFILE_OUTS)
		return REFUSE(r, "activation_size has %u parts, more than %d", n, HD_PROFILE_OUTS);
	node->out = hd_arena_take(r->arena, n, sizeof *node->out);
	if (!node->out)
		return hd_fail(r->diag, HD_E_NOMEM, "%s: no memory for its nodes", r->file);
	while (cut(&rest, ";", &one)) {
		while (node->nouts && one.len && one.at[0] == ' ')
			one = (struct text_slice){ one.at + 1, one.len - 1 };
		enum hd_err err = whole_bytes(r, "activation_size", one, &node->out[node->nouts]);
		if (err)
			return err;
		if (!hd_profile_add(&node->saved, node->out[node->nouts++]))
			return REFUSE(r, "activation_size adds up to more than 2^53 bytes: '%.*s'", QUOTE(s));
	}
	return HD_OK;
}

/*        name                      reads                                                            */
#define COSTS(X)                                                                                      \
	X(FORWARD,  "forward_compute_time",  time_us(r, "forward_compute_time", s, &forward))          \
	X(BACKWARD, "backward_compute_time", time_us(r, "backward_compute_time", s, &backward))        \
	X(OUT,      "activation_size",       activations(r, s, node))                                  \
	X(PARAM,    "parameter_size",        whole_bytes(r, "parameter_size", s, &node->param))
enum {
#define X(id, name, reads) COST_##id,
	COSTS(X)
#undef X
	NCOSTS
};

static struct hd_profile_cost one_cost(int64_t us) { return (struct hd_profile_cost){ us * NS_PER_US,
	us * NS_PER_US, 0, us * NS_PER_US, 0 }; }

static enum hd_err costs(struct import_reader *r, struct text_slice rest, struct hd_profile_node *node)
{
	static const char *const names[] = {
#define X(id, name, reads) [COST_##id] = name "=",
		COSTS(X)
#undef X
	};
	bool seen[NCOSTS] = { 0 };
	int64_t forward = 0, backward = 0;
	struct text_slice s;
	enum hd_err err = HD_OK;

	while (!err && cut(&rest, ", ", &s)) {
		uint32_t id = 0;
		while (id < NCOSTS && !begins(s, names[id]))
			id++;
		if (id == NCOSTS)
			return REFUSE(r,
				"'%.*s' is no cost of a node; they are forward_compute_time, "
				"backward_compute_time, activation_size, "
				"parameter_size", QUOTE(s));
		if (seen[id])
			return REFUSE(r, "%.*s stands there twice", (int)strlen(names[id]) - 1, names[id]);
		seen[id] = true;
		s = (struct text_slice){ s.at + strlen(names[id]), s.len - strlen(names[id]) };
		switch (id) {
#define X(cost, name, reads) case COST_##cost: err = reads; break;
			COSTS(X)
#undef X
		}
	}
	for (uint32_t id = 0; id < NCOSTS && !err; id++)
		if (!seen[id])
			err = REFUSE(r, "%.*s is missing", (int)strlen(names[id]) - 1, names[id]);
	if (err)
		return err;
	node->f = one_cost(forward);
	node->i = node->w = one_cost(backward);
	if (node->param == 0)
		node->w = one_cost(0);
	else {
		/* 1000 is even: no rest */
		node->w.p50_ns = node->w.mean_ns = node->w.min_ns = backward * NS_PER_US / 2;
		node->i = node->w;
	}
	return HD_OK;
}

static enum hd_err add_node(struct import_reader *r, uint32_t cap)
{
	struct text_slice f[FIELDS_MAX + 1];
	uint32_t n = fields(r->line, " -- ", f);
	struct hd_profile *p = r->p;

	if (n < 3 || n > FIELDS_MAX)
		return REFUSE(r, "a node is 'ID -- DESCRIPTION -- COSTS', an edge begins with a tab: '%.*s'",
			QUOTE(r->line));
	if (n == FIELDS_MAX && !begins(f[3], "stage_id="))
		return REFUSE(r, "after the costs only stage_id=N may stand, not '%.*s'", QUOTE(f[3]));
	if (f[0].len == 0 || !is_text(f[0]) || !is_text(f[1]))
		return REFUSE(r, "%s", "the id is empty, or id or description are not UTF-8 text");
	if (p->nnodes == cap)
		return REFUSE(r, "more than %u nodes", cap);
	uint32_t twin = hd_profile_ids_find(&r->ids, f[0].at, f[0].len);
	if (twin != UINT32_MAX)
		return REFUSE(r, "node '%.*s' is there already, in line %u", QUOTE(f[0]), r->line_of[twin]);
	struct hd_profile_node *node = &p->node[p->nnodes];
	*node = (struct hd_profile_node){ .id = hd_arena_text(r->arena, f[0].at, f[0].len),
		.op = hd_arena_text(r->arena, f[1].at, f[1].len),
		.tied = "", .r_ns = -1, .act_w = 1, .recompute_ok = true };
	if (!node->id || !node->op)
		return hd_fail(r->diag, HD_E_NOMEM, "%s: no memory for its nodes", r->file);
	r->line_of[p->nnodes] = r->nline;
	hd_profile_ids_add(&r->ids, p->nnodes++);
	return costs(r, f[2], node);
}

static enum hd_err add_edge(struct import_reader *r)
{
	struct text_slice f[FIELDS_MAX + 1], line = { r->line.at + 1, r->line.len - 1 };
	uint32_t end[2];

	if (fields(line, " -- ", f) != 2)
		return REFUSE(r, "an edge is a tab and 'FROM -- TO': '%.*s'", QUOTE(line));
	for (int i = 0; i < 2; i++) {
		end[i] = hd_profile_ids_find(&r->ids, f[i].at, f[i].len);
		if (end[i] == UINT32_MAX)
			return REFUSE(r, "there is no node '%.*s'", QUOTE(f[i]));
	}
	if (end[0] == end[1])
		return REFUSE(r, "node '%.*s' has an edge to itself", QUOTE(f[0]));
	r->p->edge[r->p->nedges++] = (struct hd_profile_edge){ end[0], end[1], 0 };
	return HD_OK;
}

/* Lines of each kind, for the sizes of the arrays. */
static void count(struct import_reader *r, const char *text, uint32_t *nnodes, uint32_t *nedges)
{
	*nnodes = *nedges = 0;
	rewind_to(r, text);
	while (next_line(r))
		++*(r->line.at[0] == '\t' ? nedges : nnodes);
	rewind_to(r, text);
}

static enum hd_err take(struct import_reader *r, uint32_t nnodes, uint32_t nedges)
{
	if (nnodes > HD_PROFILE_NODES || nedges > HD_PROFILE_EDGES)
		return hd_fail(r->diag, HD_E_INPUT, "%s: %u nodes and %u edges; %d and %d are the most",
			r->file, nnodes, nedges, HD_PROFILE_NODES,
			HD_PROFILE_EDGES);
	r->p->node = hd_arena_take(r->arena, (size_t)nnodes + 1, sizeof *r->p->node);
	r->p->edge = hd_arena_take(r->arena, (size_t)nedges + 1, sizeof *r->p->edge);
	r->line_of = hd_arena_take(r->arena, (size_t)nnodes + 1, sizeof *r->line_of);
	if (!r->p->node || !r->p->edge || !r->line_of || !hd_profile_ids_init(&r->ids, r->p->node, nnodes,
		r->arena))
		return hd_fail(r->diag, HD_E_NOMEM, "%s: no memory for %u nodes", r->file, nnodes);
	return HD_OK;
}

static enum hd_err walk(struct import_reader *r, const char *text, uint32_t cap)
{
	enum hd_err err = HD_OK;

	while (!err && next_line(r))
		if (r->line.at[0] != '\t')
			err = add_node(r, cap);
	rewind_to(r, text);
	while (!err && next_line(r))
		if (r->line.at[0] == '\t')
			err = add_edge(r);
	return err;
}

enum hd_err hd_profile_import(struct hd_profile *profile, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_profile p = { .method = HD_PROFILE_IMPORTED, .split_assumed = true, .device_kind = "",
		.device_name = "", .isa = "", .dtype = "f32",
		.threads = 1, .tensor_shards = 1, .ignored = "" };
	struct import_reader r = { .p = &p, .next = text, .end = text + len, .file = file, .arena = arena,
		.diag = diag };
	uint32_t nnodes, nedges, bad;
	const char *why;

	if (len > HD_PROFILE_BYTES)
		return hd_fail(diag, HD_E_INPUT, "%s: longer than %d bytes", file, HD_PROFILE_BYTES);
	count(&r, text, &nnodes, &nedges);
	enum hd_err err = take(&r, nnodes, nedges);
	if (!err)
		err = walk(&r, text, nnodes);
	if (err)
		return err;
	err = hd_profile_verify(&p, &why, &bad, arena);
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "%s: no memory for %u nodes", file, nnodes);
	if (err && bad < p.nnodes)
		return hd_fail(diag, err, "%s:%u: %s", file, r.line_of[bad], why);
	if (err)
		return hd_fail(diag, err, "%s: %s", file, why);
	*profile = p;
	return HD_OK;
}
