#include "planner/bucket.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/order/int.h"

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a problem of buckets"); }

static enum hd_err bad(const struct hd_json *at, const char *what, struct hd_diag *diag)
{
	char path[256];

	return hd_fail(diag, HD_E_INPUT, "%s: %s", hd_json_path(at, path, sizeof path), what);
}

struct op_name { const char *name; uint32_t op; };

static int by_name(const void *a, const void *b) { return strcmp(((const struct op_name *)a)->name,
	((const struct op_name *)b)->name); }

static enum hd_err take_sizes(struct hd_bucket_problem *p, const struct hd_json *sizes,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct op_name *names = hd_arena_take(arena, (size_t)p->graph.nops + 1, sizeof *names);
	enum hd_err err = HD_OK;

	if (!names)
		return no_memory(diag);
	for (uint32_t o = 0; o < p->graph.nops; o++)
		names[o] = (struct op_name){ p->graph.op[o].name, o };
	qsort(names, p->graph.nops, sizeof *names, by_name);
	for (size_t i = 0; i < hd_json_count(sizes) && !err; i++) {
		const struct op_name want = { hd_json_key(sizes, i), 0 };
		const struct op_name *found = bsearch(&want, names, p->graph.nops, sizeof want, by_name);
		err = found ? hd_json_as_i64(hd_json_item(sizes, i), 0, HD_BUCKET_SIZE_MAX,
			&p->bytes[found->op], diag) :
			bad(hd_json_item(sizes, i), "there is no op of that name", diag);
	}
	return err;
}

/* Ticks are whole numbers of 64 bits. */
static enum hd_err check_sum(const struct hd_bucket_problem *p, const struct hd_json *beta,
	struct hd_diag *diag)
{
	char path[256];
	double ticks = hd_bucket_ticks(p);

	return ticks <= HD_BUCKET_TICKS_MAX ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"%s: all gradients together take %g; %g is the most: use a larger unit of time",
		hd_json_path(beta, path, sizeof path), ticks / HD_ORDER_TICKS,
		HD_BUCKET_TICKS_MAX / HD_ORDER_TICKS);
}

static enum hd_err take(struct hd_bucket_problem *p, const struct hd_json *from, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *sizes = NULL, *alpha = NULL;
	double beta = 0;
	enum hd_err err = hd_order_graph_read(&p->graph, from, true, arena, diag);

	err = err ? err : hd_json_get(from, "gradient_size", HD_JSON_OBJECT, &sizes, diag);
	if (err)
		return err;
	alpha = hd_json_find(from, "alpha");
	p->bytes = hd_arena_take(arena, (size_t)p->graph.nops + 1, sizeof *p->bytes);
	if (!p->bytes)
		return no_memory(diag);
	err = alpha ? hd_order_time(alpha, &p->alpha, diag) : bad(from,
		"alpha is missing: what any bucket takes", diag);
	err = err ? err : hd_json_get_f64(from, "beta", &beta, diag);
	if (!err && !(isfinite(beta) && beta >= 0))
		err = bad(hd_json_find(from, "beta"), "what a byte takes is a number from 0", diag);
	p->beta = beta * HD_ORDER_TICKS;
	err = err ? err : take_sizes(p, sizes, arena, diag);
	return err ? err : check_sum(p, hd_json_find(from, "beta"), diag);
}

enum hd_err hd_bucket_read(struct hd_bucket_problem **out, uint32_t *n, const char *text, size_t len,
	const char *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_order_cases cases;
	enum hd_err err = hd_order_cases(&cases, text, len, file, arena, diag);
	struct hd_bucket_problem *list = err ? NULL : hd_arena_take(arena, cases.n, sizeof *list);

	if (!err && !list)
		err = no_memory(diag);
	for (uint32_t i = 0; !err && i < cases.n; i++)
		err = take(&list[i], hd_order_case(&cases, i), arena, diag);
	if (err)
		return err;
	*out = list;
	*n = cases.n;
	return HD_OK;
}
