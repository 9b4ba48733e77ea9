#include <string.h>

#include "plan/plan.h"
#include "plan/scan.h"

/* The text form:
 *
 *	plan 3
 *	cause "2 workers joined"
 *	stages 1
 *	cuts 0 17 33                   of several stages: the first forward node of each
 *	overlap                        steps do (pipeline/window.h)
 *	tensor 2                       devices of a rank, if more than one
 *	groups 2                       ranks that share a stage, if more than one
 *	workers 0-1:0 2:1              rank or ranks : worker
 *	map 0-7:0 8-15:1               virtual nodes : rank
 *	owner 0-41:0 42:1              chunks : rank
 *	xfer root 0>1 class=1 prio=0 bucket=2 chunks=8+4 bytes=1048576 ns=90000 via=0
 *	0: LD0.0 F0.0 B0.0 RED0 NORM STEP0
 *	1: ...
 *
 * Directives stand in any order before the lists; the printed order is the one above.
 * Comments begin with '#'. One plan has one printed form, and that parses back to it. */

enum { MAX_CHUNKS = 1 << 22, MAX_XFERS = 1 << 20, MAX_CAUSE = 512,
       HD_MAX_CUT = 1 << 20 };

static uint32_t worker_of(const struct hd_plan *plan, uint32_t i) { return plan->worker[i]; }

static uint32_t rank_of(const struct hd_plan *plan, uint32_t i) { return plan->map[i]; }

static uint32_t owner_of(const struct hd_plan *plan, uint32_t i) { return plan->owner[i]; }

/* A list of numbers as runs of equal ones. */
static void print_runs(struct hd_text *text, const char *name, const struct hd_plan *plan, uint32_t n,
	uint32_t (*value)(const struct hd_plan *plan, uint32_t i))
{
	uint32_t end;

	hd_text_add(text, name);
	for (uint32_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && value(plan, end) == value(plan, i); end++)
			;
		hd_text_addf(text, " %u", i);
		if (end > i + 1)
			hd_text_addf(text, "-%u", end - 1);
		hd_text_addf(text, ":%u", value(plan, i));
	}
	hd_text_add(text, "\n");
}

static const struct { uint8_t number; const char *text; } kinds[] = {
#define X(id, number, text, about) { number, text },
	HD_XFERS(X)
#undef X
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static const char *kind_text(uint8_t number)
{
	for (size_t i = 0; i < NKINDS; i++)
		if (kinds[i].number == number)
			return kinds[i].text;
	return "?";
}

void hd_xfer_print(const struct hd_xfer *x, struct hd_text *text)
{
	hd_text_addf(text,
		"xfer %s %u>%u class=%u prio=%u bucket=%u chunks=%u+%u bytes=%llu ns=%llu via=%u\n",
		kind_text(x->kind),
		x->from, x->to, x->class, x->priority, x->bucket, x->first_chunk, x->nchunks,
		(unsigned long long)x->len_bytes,
		(unsigned long long)x->predicted_ns, x->primitive);
}

/* One line: what is no printable byte becomes a blank. */
static void print_cause(struct hd_text *text, const char *cause)
{
	hd_text_add(text, "cause \"");
	for (size_t n = 0; *cause && n < MAX_CAUSE; cause++, n++) {
		char c = (unsigned char)*cause < 0x20 || *cause == 0x7f ? ' ' : *cause;
		if (c == '"' || c == '\\')
			hd_text_add(text, "\\");
		hd_text_put(text, &c, 1);
	}
	hd_text_add(text, "\"\n");
}

static void print_body(const struct hd_plan *plan, struct hd_text *text)
{
	hd_text_addf(text, "stages %u\n", plan->nstages);
	if (plan->first) {
		hd_text_add(text, "cuts");
		for (uint32_t i = 0; i < plan->nstages; i++)
			hd_text_addf(text, " %u", plan->first[i]);
		hd_text_add(text, "\n");
	}
	if (plan->overlap)
		hd_text_add(text, "overlap\n");
	if (plan->tensor > 1)
		hd_text_addf(text, "tensor %u\n", plan->tensor);
	if (plan->groups > 1)
		hd_text_addf(text, "groups %u\n", plan->groups);
	print_runs(text, "workers", plan, plan->nranks, worker_of);
	print_runs(text, "map", plan, plan->nvns, rank_of);
	print_runs(text, "owner", plan, plan->nchunks, owner_of);
	for (uint32_t i = 0; i < plan->xfers.len; i++)
		hd_xfer_print(&plan->xfers.at[i], text);
	for (uint32_t r = 0; r < plan->nranks; r++) {
		hd_text_addf(text, "%u:", r);
		hd_list_print(&plan->list[r], text);
		hd_text_add(text, "\n");
	}
}

enum hd_err hd_plan_print(const struct hd_plan *plan, struct hd_text *text)
{
	hd_text_addf(text, "plan %u\n", plan->number);
	print_cause(text, plan->cause ? plan->cause : "");
	print_body(plan, text);
	return text->full ? HD_E_NOSPACE : HD_OK;
}

struct hd_hash hd_plan_digest(const struct hd_plan *plan)
{
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	print_body(plan, &text);
	struct hd_hash hash = hd_hash(text.at, text.len);
	hd_arena_finish(&arena);
	return hash;
}

/* Reading: a row per directive. */

struct plan_reader {
	struct hd_scan scan;
	struct hd_plan plan;
	struct hd_arena *arena;
	uint32_t seen;                    /* bits of directives */
	uint32_t nlists, ins_left;
	bool *listed;                     /* [nranks] */
};

static enum hd_err no_memory(const struct plan_reader *r)
{
	return hd_fail(r->scan.diag, HD_E_NOMEM, "%s:%u: no memory for this line", r->scan.file,
		r->scan.nline);
}

static enum hd_err one_number(struct plan_reader *r, uint64_t max, uint32_t *out)
{
	const char *word;
	size_t len;
	uint64_t v = 0;

	hd_scan_word(&r->scan, &word, &len);
	enum hd_err err = hd_scan_number(&r->scan, word, len, max, &v);
	if (!err && hd_scan_word(&r->scan, &word, &len))
		err = hd_scan_refuse(&r->scan, word, "one number belongs here");
	if (!err)
		*out = (uint32_t)v;
	return err;
}

static enum hd_err read_number(struct plan_reader *r) { return one_number(r, UINT32_MAX, &r->plan.number); }

static enum hd_err read_stages(struct plan_reader *r) { return one_number(r, UINT16_MAX, &r->plan.nstages); }

/* One number a stage; the line stages stands before it. */
static enum hd_err read_cuts(struct plan_reader *r)
{
	const char *word;
	size_t len;
	uint64_t v = 0;
	uint32_t n = 0;

	if (r->plan.nstages < 1)
		return hd_scan_refuse(&r->scan, r->scan.line,
			"the line cuts stands after a line stages of 1 or more");
	r->plan.first = hd_arena_take(r->arena, r->plan.nstages, sizeof *r->plan.first);
	if (!r->plan.first)
		return no_memory(r);
	while (hd_scan_word(&r->scan, &word, &len)) {
		if (n == r->plan.nstages)
			return hd_scan_refuse(&r->scan, word, "there are %u stages: one number each",
				r->plan.nstages);
		enum hd_err err = hd_scan_number(&r->scan, word, len, HD_MAX_CUT, &v);
		if (err)
			return err;
		r->plan.first[n++] = (uint32_t)v;
	}
	return n == r->plan.nstages ? HD_OK : hd_scan_refuse(&r->scan, r->scan.line_end,
		"there are %u stages: one number each, here are %u", r->plan.nstages, n);
}

static enum hd_err read_overlap(struct plan_reader *r)
{
	const char *word;
	size_t len;

	if (!r->plan.first)
		return hd_scan_refuse(&r->scan, r->scan.line, "the line overlap stands after a line cuts");
	r->plan.overlap = true;
	return hd_scan_word(&r->scan, &word, &len) ? hd_scan_refuse(&r->scan, word,
		"the line overlap is a word alone") : HD_OK;
}

/* Of stages that have a beginning, and only where it is not 1. */
static enum hd_err several(struct plan_reader *r, const char *line, const char *what, uint32_t *out)
{
	if (!r->plan.first)
		return hd_scan_refuse(&r->scan, r->scan.line, "the line %s stands after a line cuts", line);
	enum hd_err err = one_number(r, HD_MAX_RANKS, out);

	return err || *out > 1 ? err : hd_scan_refuse(&r->scan, r->scan.line,
		"the line %s says 2 %s or more; leave it out for one", line, what);
}

static enum hd_err read_tensor(struct plan_reader *r)
{
	return several(r, "tensor", "devices of a rank", &r->plan.tensor);
}

static enum hd_err read_groups(struct plan_reader *r)
{
	return several(r, "groups", "ranks that share a stage", &r->plan.groups);
}

static enum hd_err read_cause(struct plan_reader *r)
{
	struct hd_scan *s = &r->scan;
	struct hd_text text;

	hd_text_init(&text, r->arena);
	while (s->at < s->line_end && (*s->at == ' ' || *s->at == '\t'))
		s->at++;
	if (s->at == s->line_end || *s->at != '"')
		return hd_scan_refuse(s, s->at, "the cause stands between double quotes");
	for (s->at++; s->at < s->line_end && *s->at != '"'; s->at++) {
		if ((unsigned char)*s->at < 0x20 || *s->at == 0x7f)
			return hd_scan_refuse(s, s->at, "a control character in the cause");
		if (*s->at == '\\' && ++s->at < s->line_end && *s->at != '"' && *s->at != '\\')
			return hd_scan_refuse(s, s->at, "a \\ stands before \" or \\ only");
		if (s->at < s->line_end)
			hd_text_put(&text, s->at, 1);
	}
	if (s->at >= s->line_end || s->at + 1 != s->line_end)
		return hd_scan_refuse(s, s->at < s->line_end ? s->at : s->line_end,
			"the cause ends with a double quote, and the line with it");
	if (text.len > MAX_CAUSE)
		return hd_scan_refuse(s, s->line, "the cause is longer than %d bytes", MAX_CAUSE);
	r->plan.cause = text.at;
	return text.full ? no_memory(r) : HD_OK;
}

/* "4-7:1" or "4:1" beginning at `next`; one past its last index is returned by `end`. */
static enum hd_err read_run(struct plan_reader *r, const char *word, size_t len, uint32_t next, uint32_t cap,
	uint32_t max, uint32_t *end, uint32_t *value)
{
	const char *colon = memchr(word, ':', len), *dash = colon ? memchr(word, '-',
		(size_t)(colon - word)) : NULL;
	const char *first_end = dash ? dash : colon;
	uint64_t first = 0, last = 0, v = 0;

	if (!colon)
		return hd_scan_refuse(&r->scan, word, "write FIRST-LAST:VALUE, as 0-7:1");
	enum hd_err err = hd_scan_number(&r->scan, word, (size_t)(first_end - word), cap - 1, &first);
	last = first;
	if (!err && dash)
		err = hd_scan_number(&r->scan, dash + 1, (size_t)(colon - dash) - 1, cap - 1, &last);
	if (!err)
		err = hd_scan_number(&r->scan, colon + 1, (size_t)(word + len - colon) - 1, max, &v);
	if (!err && (first != next || last < first))
		err = hd_scan_refuse(&r->scan, word, "%u comes next: indices ascend without a hole", next);
	if (!err) {
		*end = (uint32_t)last + 1;
		*value = (uint32_t)v;
	}
	return err;
}

static enum hd_err read_runs(struct plan_reader *r, uint32_t cap, uint32_t max, uint32_t **out, uint32_t *n)
{
	struct hd_scan start = r->scan;
	const char *word;
	size_t len;
	uint32_t total = 0, end = 0, value = 0, *list = NULL;
	enum hd_err err = HD_OK;

	/* once for the length, once for the values */
	for (int pass = 0; pass < 2 && !err; pass++) {
		r->scan = start;
		for (uint32_t at = 0; !err && hd_scan_word(&r->scan, &word, &len); at = end) {
			err = read_run(r, word, len, at, cap, max, &end, &value);
			total = err ? total : end;
			for (uint32_t i = at; list && !err && i < end; i++)
				list[i] = value;
		}
		if (!err && !list && !(list = hd_arena_take(r->arena, (size_t)total + 1, sizeof *list)))
			err = no_memory(r);
	}
	if (!err) {
		*out = list;
		*n = total;
	}
	return err;
}

static enum hd_err read_workers(struct plan_reader *r)
{
	uint32_t *worker = NULL;
	enum hd_err err = read_runs(r, HD_MAX_RANKS, UINT16_MAX, &worker, &r->plan.nranks);

	if (err)
		return err;
	if (!r->plan.nranks)
		return hd_scan_refuse(&r->scan, r->scan.line, "a plan has at least one rank");
	r->plan.worker = hd_arena_take(r->arena, r->plan.nranks, sizeof *r->plan.worker);
	r->plan.list = hd_arena_take(r->arena, r->plan.nranks, sizeof *r->plan.list);
	r->listed = hd_arena_take(r->arena, r->plan.nranks, sizeof *r->listed);
	if (!r->plan.worker || !r->plan.list || !r->listed)
		return no_memory(r);
	for (uint32_t i = 0; i < r->plan.nranks; i++)
		r->plan.worker[i] = (uint16_t)worker[i];
	return HD_OK;
}

static enum hd_err read_map(struct plan_reader *r) { return read_runs(r, HD_MAX_VNS, UINT32_MAX, &r->plan.map,
	&r->plan.nvns); }

static enum hd_err read_owner(struct plan_reader *r) { return read_runs(r, MAX_CHUNKS, UINT32_MAX,
	&r->plan.owner,
	&r->plan.nchunks); }

/* NAME=A or NAME=A+B, A>B without a name. */
static enum hd_err read_field(struct plan_reader *r, const char *name, char between, uint64_t max,
	uint64_t *a,
	uint64_t *b)
{
	const char *word, *split;
	size_t len, skip = strlen(name);

	if (!hd_scan_word(&r->scan, &word, &len) || len <= skip || memcmp(word, name, skip) != 0)
		return hd_scan_refuse(&r->scan, word, "%s%s belongs here", *name ? name : "FROM>TO",
			*name ? "..." : "");
	word += skip;
	len -= skip;
	split = b ? memchr(word, between, len) : word + len;
	if (!split)
		return hd_scan_refuse(&r->scan, word, "two numbers with %c between belong here", between);
	enum hd_err err = hd_scan_number(&r->scan, word, (size_t)(split - word), max, a);
	return err || !b ? err : hd_scan_number(&r->scan, split + 1, (size_t)(word + len - split) - 1, max,
		b);
}

static enum hd_err grow_xfers(struct plan_reader *r)
{
	struct hd_xfers *x = &r->plan.xfers;

	if (x->len < x->cap)
		return HD_OK;
	if (x->len == MAX_XFERS)
		return hd_scan_refuse(&r->scan, r->scan.line, "more than %d transfers", MAX_XFERS);
	uint32_t cap = x->cap ? 2 * x->cap : 8;
	struct hd_xfer *at = hd_arena_take(r->arena, cap, sizeof *at);
	if (!at)
		return no_memory(r);
	if (x->len)
		memcpy(at, x->at, x->len * sizeof *at);
	x->at = at;
	x->cap = cap;
	return HD_OK;
}

static enum hd_err read_xfer(struct plan_reader *r)
{
	const char *word;
	size_t len, k = 0;
	uint64_t v[11] = { 0 };
	static const struct { const char *name; char between; uint64_t max; int pair; } field[] = {
		{ "", '>', UINT32_MAX, 1 }, { "class=", 0, HD_XFER_BULK, 0 }, { "prio=", 0, UINT32_MAX, 0 },
			{ "bucket=", 0, UINT32_MAX, 0 },
		{ "chunks=", '+', UINT32_MAX, 1 }, { "bytes=", 0, INT64_MAX, 0 }, { "ns=", 0, INT64_MAX, 0 },
		{ "via=", 0, UINT8_MAX, 0 },
	};
	enum { FROM, TO, CLASS, PRIO, BUCKET, FIRST, N, BYTES, NS, VIA };
	enum hd_err err = grow_xfers(r);

	if (err)
		return err;
	hd_scan_word(&r->scan, &word, &len);
	while (k < NKINDS && (strlen(kinds[k].text) != len || memcmp(kinds[k].text, word, len) != 0))
		k++;
	if (k == NKINDS)
		return hd_scan_refuse(&r->scan, word, "there is no transfer \"%.*s\"",
			(int)(len < 20 ? len : 20), word);
	for (size_t i = 0, n = 0; i < sizeof field / sizeof field[0] && !err; n += field[i].pair ? 2 : 1, i++)
		err = read_field(r, field[i].name, field[i].between, field[i].max, &v[n],
			field[i].pair ? &v[n + 1] : NULL);
	if (!err && hd_scan_word(&r->scan, &word, &len))
		err = hd_scan_refuse(&r->scan, word, "the line ends here");
	if (!err)
		r->plan.xfers.at[r->plan.xfers.len++] = (struct hd_xfer){
			.kind = kinds[k].number, .class = (uint8_t)v[CLASS], .primitive = (uint8_t)v[VIA],
			.from = (uint32_t)v[FROM], .to = (uint32_t)v[TO], .priority = (uint32_t)v[PRIO],
			.bucket = (uint32_t)v[BUCKET],
			.first_chunk = (uint32_t)v[FIRST], .nchunks = (uint32_t)v[N], .len_bytes = v[BYTES],
			.predicted_ns = v[NS],
		};
	return err;
}

static const struct { const char *word; bool needed, many; enum hd_err (*read)(struct plan_reader *r);
	} directives[] = {
	{ "plan",    true,  false, read_number },
	{ "cause",   false, false, read_cause },
	{ "stages",  true,  false, read_stages },
	{ "cuts",    false, false, read_cuts },
	{ "overlap", false, false, read_overlap },
	{ "tensor",  false, false, read_tensor },
	{ "groups",  false, false, read_groups },
	{ "workers", true,  false, read_workers },
	{ "map",     true,  false, read_map },
	{ "owner",   true,  false, read_owner },
	{ "xfer",    false, true,  read_xfer },
};
enum { NDIRECTIVES = sizeof directives / sizeof directives[0] };

static enum hd_err read_directive(struct plan_reader *r)
{
	const char *word;
	size_t len, d = 0;

	hd_scan_word(&r->scan, &word, &len);
	while (d < NDIRECTIVES && (strlen(directives[d].word) != len ||
		memcmp(directives[d].word, word, len) != 0))
		d++;
	if (d == NDIRECTIVES)
		return hd_scan_refuse(&r->scan, word, "there is no directive \"%.*s\"",
			(int)(len < 20 ? len : 20), word);
	if ((r->seen & 1u << d) && !directives[d].many)
		return hd_scan_refuse(&r->scan, word, "a second %s", directives[d].word);
	if (r->nlists)
		return hd_scan_refuse(&r->scan, word, "directives stand before the lists of the ranks");
	r->seen |= 1u << d;
	return directives[d].read(r);
}

static enum hd_err read_list(struct plan_reader *r)
{
	const char *at = r->scan.at;
	uint32_t rank = 0;

	if (!r->plan.nranks)
		return hd_scan_refuse(&r->scan, at, "the line workers stands before the lists of the ranks");
	enum hd_err err = hd_scan_rank(&r->scan, r->plan.nranks, &rank);
	if (!err && r->listed[rank])
		err = hd_scan_refuse(&r->scan, at, "rank %u has two lists", rank);
	if (err)
		return err;
	r->listed[rank] = true;
	r->nlists++;
	return hd_scan_list(&r->scan, &r->plan.list[rank], &r->ins_left, r->arena);
}

static enum hd_err check_whole(const struct plan_reader *r)
{
	for (size_t d = 0; d < NDIRECTIVES; d++)
		if (directives[d].needed && !(r->seen & 1u << d))
			return hd_fail(r->scan.diag, HD_E_INPUT, "%s: the line %s is missing", r->scan.file,
				directives[d].word);
	for (uint32_t rank = 0; rank < r->plan.nranks; rank++)
		if (!r->listed[rank])
			return hd_fail(r->scan.diag, HD_E_INPUT, "%s: rank %u has no list", r->scan.file,
				rank);
	return HD_OK;
}

enum hd_err hd_plan_parse(struct hd_plan *plan, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct plan_reader r = { .scan = hd_scan_of(text, len, file, diag), .plan = { .cause = "" },
		.arena = arena, .ins_left = HD_MAX_INS };
	enum hd_err err = HD_OK;

	while (!err && hd_scan_line(&r.scan, false))
		err = hd_scan_is_list(&r.scan) ? read_list(&r) : read_directive(&r);
	err = err ? err : check_whole(&r);
	if (!err)
		*plan = r.plan;
	return err;
}
