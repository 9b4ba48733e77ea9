#include "planner/order/int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct order_name { const char *name; uint32_t id; };

struct order_reader {
	struct hd_order_graph *graph;
	struct order_name *name; uint32_t nnames;       /* of receives and ops, by name */
	struct hd_diag *diag;
};

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a graph of receives"); }

static enum hd_err bad(const struct hd_json *at, const char *what, struct hd_diag *diag)
{
	char path[256];

	return hd_fail(diag, HD_E_INPUT, "%s: %s", hd_json_path(at, path, sizeof path), what);
}

enum hd_err hd_order_time(const struct hd_json *at, int64_t *out, struct hd_diag *diag)
{
	double units = 0;
	enum hd_err err = hd_json_as_f64(at, &units, diag);

	if (!err && !(units >= 0 && units <= HD_ORDER_UNITS))
		err = bad(at, "a time is from 0 to 1e6", diag);
	*out = err ? 0 : llround(units * HD_ORDER_TICKS);
	return err;
}

static int by_name(const void *a, const void *b) { return strcmp(((const struct order_name *)a)->name,
	((const struct order_name *)b)->name); }

static enum hd_err list_names(struct order_reader *x, const struct hd_json *ops)
{
	const struct hd_order_graph *g = x->graph;

	for (uint32_t i = 0; i < g->nrecvs; i++)
		x->name[x->nnames++] = (struct order_name){ g->recv[i], i };
	for (uint32_t i = 0; i < g->nops; i++)
		x->name[x->nnames++] = (struct order_name){ g->op[i].name, g->nrecvs + i };
	qsort(x->name, x->nnames, sizeof *x->name, by_name);
	for (uint32_t i = 1; i < x->nnames; i++)
		if (!strcmp(x->name[i].name, x->name[i - 1].name)) {
			char path[256];
			return hd_fail(x->diag, HD_E_INPUT, "%s: %.80s is a receive, too",
				hd_json_path(ops, path, sizeof path), x->name[i].name);
		}
	return HD_OK;
}

static enum hd_err take_inputs(struct order_reader *x, const struct hd_json *list, struct hd_order_op *op)
{
	struct hd_order_graph *g = x->graph;

	op->first = g->ninputs;
	for (size_t i = 0; i < hd_json_count(list); i++) {
		struct order_name want = { NULL, 0 };
		enum hd_err err = hd_json_as_text(hd_json_item(list, i), &want.name, x->diag);
		if (err)
			return err;
		const struct order_name *found = bsearch(&want, x->name, x->nnames, sizeof want, by_name);
		if (!found) {
			char path[256];
			return hd_fail(x->diag, HD_E_INPUT,
				"%s: op %.80s needs %.80s, which is neither a receive nor an op",
				hd_json_path(hd_json_item(list, i), path, sizeof path), op->name, want.name);
		}
		g->input[g->ninputs++] = found->id;
	}
	op->ninputs = g->ninputs - op->first;
	return HD_OK;
}

static enum hd_err take_ops(struct order_reader *x, const struct hd_json *ops)
{
	struct hd_order_graph *g = x->graph;
	enum hd_err err = list_names(x, ops);

	for (uint32_t i = 0; i < g->nops && !err; i++) {
		const struct hd_json *from = hd_json_item(ops, i), *time = hd_json_find(from, "time"),
			*list = NULL;
		bool known = time && hd_json_kind(time) != HD_JSON_NULL;
		g->op[i].time = (int64_t)HD_ORDER_TICKS;
		g->measured &= known;
		if (known)
			err = hd_order_time(time, &g->op[i].time, x->diag);
		if (!err)
			err = hd_json_get(from, "inputs", HD_JSON_ARRAY, &list, x->diag);
		if (!err)
			err = take_inputs(x, list, &g->op[i]);
	}
	return err;
}

static uint64_t count_inputs(const struct hd_json *ops)
{
	uint64_t n = 0;

	for (size_t i = 0; i < hd_json_count(ops); i++) {
		const struct hd_json *list = hd_json_find(hd_json_item(ops, i), "inputs");
		n += list ? hd_json_count(list) : 0;
	}
	return n;
}

enum hd_err hd_order_graph_read(struct hd_order_graph *g, const struct hd_json *from, bool bare,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *recv = NULL, *ops = NULL, *name = hd_json_find(from, "name");
	struct order_reader x = { .graph = g, .diag = diag };
	enum hd_err err = bare ? HD_OK : hd_json_get(from, "recv", HD_JSON_OBJECT, &recv, diag);

	err = err ? err : hd_json_get(from, "ops", HD_JSON_OBJECT, &ops, diag);
	*g = (struct hd_order_graph){ .name = "", .measured = true, .unit = HD_ORDER_TICKS };
	if (!err && name)
		err = hd_json_as_text(name, &g->name, diag);
	if (err)
		return err;
	if ((recv && hd_json_count(recv) > HD_ORDER_RECVS) || hd_json_count(ops) > HD_ORDER_OPS)
		return bad(from, "at most 65535 receives and 1048576 ops", diag);
	g->nrecvs = recv ? (uint32_t)hd_json_count(recv) : 0;
	g->nops = (uint32_t)hd_json_count(ops);
	g->recv = hd_arena_take(arena, (size_t)g->nrecvs + 1, sizeof *g->recv);
	g->recv_time = hd_arena_take(arena, (size_t)g->nrecvs + 1, sizeof *g->recv_time);
	g->op = hd_arena_take(arena, (size_t)g->nops + 1, sizeof *g->op);
	g->input = hd_arena_take(arena, count_inputs(ops) + 1, sizeof *g->input);
	x.name = hd_arena_take(arena, (size_t)g->nrecvs + g->nops + 1, sizeof *x.name);
	if (!g->recv || !g->recv_time || !g->op || !g->input || !x.name)
		return no_memory(diag);
	for (uint32_t i = 0; i < g->nrecvs && !err; i++) {
		g->recv[i] = hd_json_key(recv, i);
		err = hd_order_time(hd_json_item(recv, i), &g->recv_time[i], diag);
	}
	for (uint32_t i = 0; i < g->nops; i++)
		g->op[i].name = hd_json_key(ops, i);
	err = err ? err : take_ops(&x, ops);
	return err ? err : hd_order_settle(g, arena, diag);
}

enum hd_err hd_order_cases(struct hd_order_cases *out, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_order_cases c = { .n = 1 };
	enum hd_err err = hd_json_parse(arena, file, text, len, &c.root, diag);

	if (err)
		return err;
	c.list = hd_json_find(c.root, "cases");
	if (c.list)
		err = hd_json_as(c.list, HD_JSON_ARRAY, diag);
	if (c.list && !err)
		c.n = (uint32_t)hd_json_count(c.list);
	if (!err && !c.n)
		err = bad(c.list, "there is no case in it", diag);
	if (!err)
		*out = c;
	return err;
}

enum hd_err hd_order_read(struct hd_order_graph **out, uint32_t *n, const char *text, size_t len,
	const char *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_order_cases cases;
	enum hd_err err = hd_order_cases(&cases, text, len, file, arena, diag);
	struct hd_order_graph *list = err ? NULL : hd_arena_take(arena, cases.n, sizeof *list);

	if (!err && !list)
		err = no_memory(diag);
	for (uint32_t i = 0; !err && i < cases.n; i++)
		err = hd_order_graph_read(&list[i], hd_order_case(&cases, i), false, arena, diag);
	if (err)
		return err;
	*out = list;
	*n = cases.n;
	return HD_OK;
}
