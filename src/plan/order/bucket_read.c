#include "plan/bucket.h"

#include <math.h>
#include <string.h>

#include "plan/order/int.h"

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory for a problem of buckets"); }

static enum hd_err bad(const struct hd_json *at, const char *what, struct hd_diag *diag)
{
	char path[256];

	return hd_fail(diag, HD_E_INPUT, "%s: %s", hd_json_path(at, path, sizeof path), what);
}

static enum hd_err take_sizes(struct hd_bucket_problem *p, const struct hd_json *sizes, struct hd_diag *diag)
{
	uint32_t found = 0;

	for (uint32_t o = 0; o < p->graph.nops; o++) {
		const struct hd_json *size = hd_json_find(sizes, p->graph.op[o].name);
		enum hd_err err = size ? hd_json_as_i64(size, 0, HD_BUCKET_SIZE_MAX, &p->bytes[o], diag) : HD_OK;
		if (err)
			return err;
		found += size != NULL;
	}
	for (size_t i = 0; i < hd_json_count(sizes) && found < hd_json_count(sizes); i++) {
		uint32_t o = 0;
		while (o < p->graph.nops && strcmp(p->graph.op[o].name, hd_json_key(sizes, i)) != 0)
			o++;
		if (o == p->graph.nops)
			return bad(hd_json_item(sizes, i), "there is no op of that name", diag);
	}
	return HD_OK;
}

static enum hd_err take(struct hd_bucket_problem *p, const struct hd_json *from, struct hd_arena *arena, struct hd_diag *diag)
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
	err = alpha ? hd_order_time(alpha, &p->alpha, diag) : bad(from, "alpha is missing: what any bucket takes", diag);
	err = err ? err : hd_json_get_f64(from, "beta", &beta, diag);
	if (!err && !(beta >= 0 && beta <= 1))
		err = bad(hd_json_find(from, "beta"), "what a byte takes is from 0 to 1", diag);
	p->beta = beta * HD_ORDER_TICKS;
	return err ? err : take_sizes(p, sizes, diag);
}

enum hd_err hd_bucket_read(struct hd_bucket_problem **out, uint32_t *n, const char *text, size_t len, const char *file, struct hd_arena *arena,
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
