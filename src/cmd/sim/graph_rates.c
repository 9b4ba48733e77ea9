#include "cmd/sim/graph_rates.h"

#include <math.h>
#include <stddef.h>

#include "base/json.h"
#include "graph/op.h"
#include "device/single.h"
#include "device/spmm.h"
#include "cmd/bench/power_law.h"

/* WIDTH: columns gathered. IN, OUT: of a product of ROWS rows. */
enum { FILE_BYTES = 64 << 10, VERTICES = 20000, EDGES = 400000, WIDTH = 128, ROWS = 2048, IN = 512,
	OUT = 128, REPEAT = 3, NINPUTS = 2 };

#define X(name, least, otherwise, most) \
	{ #name, least, otherwise, most, offsetof(struct hd_gval_rates, name) },
static const struct rate { const char *name; double least, otherwise, most; size_t at; } rate_row[] = {
	HD_GVAL_RATES(X)
};
#undef X
enum { NRATES = sizeof rate_row / sizeof *rate_row };

static void otherwise(struct hd_gval_rates *rates)
{
	for (size_t i = 0; i < NRATES; i++)
		*(double *)((char *)rates + rate_row[i].at) = rate_row[i].otherwise;
}

static enum hd_err get_rate(struct hd_cmd *cmd, const struct hd_json *json, const struct rate *row,
	double *to)
{
	char path[128];

	if (row->otherwise > 0 && !hd_json_find(json, row->name))
		return HD_OK;
	const enum hd_err err = hd_json_get_f64(json, row->name, to, &cmd->diag);
	if (!err && !(*to >= row->least && *to <= row->most))
		return hd_fail(&cmd->diag, HD_E_INPUT, "%s.%s is %g: it is between %g and %g",
			hd_json_path(json, path, sizeof path), row->name, *to, row->least, row->most);
	return err;
}

enum hd_err hd_graph_rates_read(struct hd_cmd *cmd, const char *path, struct hd_gval_rates *rates)
{
	const char *keys[NRATES + 1] = { NULL };
	const struct hd_json *json = NULL;
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, FILE_BYTES, &bytes, &len, &cmd->diag);

	otherwise(rates);
	for (size_t i = 0; i < NRATES; i++)
		keys[i] = rate_row[i].name;
	err = err ? err : hd_json_parse(&cmd->arena, path, (const char *)bytes, len, &json, &cmd->diag);
	err = err ? err : hd_json_as(json, HD_JSON_OBJECT, &cmd->diag);
	err = err ? err : hd_json_only(json, keys, &cmd->diag);
	for (size_t i = 0; i < NRATES && !err; i++)
		err = get_rate(cmd, json, &rate_row[i], (double *)((char *)rates + rate_row[i].at));
	return err;
}

/* ---- measured */

static double seconds_from(struct hd_clock *clock, int64_t began_ns)
{
	const int64_t ns = hd_clock_now_ns(clock) - began_ns;

	return (double)(ns > 0 ? ns : 1) * 1e-9;
}

/* Least time of one op of two operands, in processor time. */
static enum hd_err time_op(struct hd_cmd *cmd, struct hd_device *device, uint16_t op,
	const struct hd_value in[],
	uint64_t rows, const void *const input[], double *least)
{
	struct hd_single *single = hd_arena_take(&cmd->arena, 1, sizeof *single);
	void *arena = NULL;
	uint64_t token = 0;
	struct hd_clock core;
	enum hd_err err = single ? hd_single_make(single, op, NINPUTS, in, &(struct hd_attr){ 0 }, &rows, 1,
		&cmd->arena, &cmd->diag) : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory");

	if (!err)
		err = device->ops->load(device, &single->program, &cmd->diag);
	if (!err)
		err = device->ops->take(device, single->program.memory.len_bytes, &arena, &cmd->diag);
	const struct hd_bind bind = { .rows = rows, .input = input, .arena = arena };
	hd_clock_thread(&core);
	*least = INFINITY;
	for (int i = 0; i < REPEAT && !err; i++) {
		const int64_t began_ns = hd_clock_now_ns(&core);
		err = device->ops->run(device, &single->program, HD_RUN_F, &bind, &token, &cmd->diag);
		err = err ? err : device->ops->wait(device, token, &cmd->diag);
		*least = fmin(*least, seconds_from(&core, began_ns));
	}
	if (arena)
		device->ops->give(device, arena, single->program.memory.len_bytes);
	return err;
}

static double time_gather(const struct hd_spmm *call)
{
	struct hd_clock core;
	double least = INFINITY;

	hd_clock_thread(&core);
	for (int i = 0; i < REPEAT; i++) {
		const int64_t began_ns = hd_clock_now_ns(&core);
		hd_edge_kernels(NULL)->spmm(call);
		least = fmin(least, seconds_from(&core, began_ns));
	}
	return least;
}

static void measure_gathers(const struct hd_power_law *g, const float *x, const float *weight, float *y,
	struct hd_gval_rates *rates)
{
	struct hd_spmm call = { .offset = g->offset, .at = g->at, .last = g->nvertices, .width = WIDTH,
		.x = x, .x_stride = WIDTH, .y = y, .y_stride = WIDTH };
	const double columns = (double)g->nedges * WIDTH;

	rates->gather_per_s = columns / time_gather(&call);
	call.weight = weight;
	rates->weighted_per_s = columns / time_gather(&call);
}

static enum hd_err measure_ops(struct hd_cmd *cmd, const struct hd_power_law *g, const float *x, int32_t *to,
	struct hd_gval_rates *rates)
{
	const struct hd_value product[NINPUTS] = {
		{ .rank = 2, .dim = { -1, IN }, .dtype = HD_F32 }, { .rank = 2, .dim = { IN, OUT },
			.dtype = HD_F32 } };
	const struct hd_value softmax[NINPUTS] = {
		{ .rank = 1, .dim = { -1 }, .dtype = HD_I32 }, { .rank = 2, .dim = { -1, 1 }, .dtype =
			HD_F32 } };
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE };
	struct hd_device *device = NULL;
	double product_s = 0, softmax_s = 0;
	enum hd_err err = hd_device_create(&device, "cpu", &spec, &cmd->diag);

	for (uint64_t v = 0; v < g->nvertices; v++)
		for (uint64_t e = g->offset[v]; e < g->offset[v + 1]; e++)
			to[e] = (int32_t)v;
	if (!err)
		err = time_op(cmd, device, HD_OP_MATMUL, product, ROWS, (const void *[]){ x, x }, &product_s);
	if (!err)
		err = time_op(cmd, device, HD_OP_EDGE_SOFTMAX, softmax, g->nedges, (const void *[]){ to, x },
			&softmax_s);
	hd_device_destroy(device);
	rates->flops_per_s = 2.0 * ROWS * IN * OUT / product_s;
	rates->softmax_per_s = (double)g->nedges / softmax_s;
	return err;
}

enum hd_err hd_graph_rates_measure(struct hd_cmd *cmd, struct hd_gval_rates *rates)
{
	const uint64_t n = (uint64_t)VERTICES * WIDTH;
	float *x = hd_arena_take(&cmd->arena, n, sizeof *x), *y = hd_arena_take(&cmd->arena, n, sizeof *y);
	int32_t *to = hd_arena_take(&cmd->arena, EDGES, sizeof *to);
	struct hd_power_law graph = { 0 };

	otherwise(rates);
	enum hd_err err = x && y && to ? hd_power_law_make(&graph, VERTICES, EDGES, 1, &cmd->diag) :
		hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to measure in; give --rates FILE");
	for (uint64_t i = 0; i < n && !err; i++)
		x[i] = (float)((i * 2654435761u >> 8 & 0xffff) + 1) * 0x1p-16f, y[i] = 0;
	if (!err)
		measure_gathers(&graph, x, x, y, rates);
	if (!err)
		err = measure_ops(cmd, &graph, x, to, rates);
	hd_power_law_free(&graph);
	return err;
}
