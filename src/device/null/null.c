#include "device/grid.h"

#include <string.h>

#include "device/program.h"

/* Memory is real but lazily mapped: as nothing is computed into it, it costs no pages
 * and every result reads as zero. What a phase would cost is hd_program_cost(). */

static void no_init(void) { }

static enum hd_err null_open(struct hd_device *device, const struct hd_device_spec *spec,
	struct hd_diag *diag)
{
	struct hd_device_spec alone = *spec;

	alone.nthreads = 1;               /* there is nothing to do */
	enum hd_err err = hd_grid_open(device, &alone, &(struct hd_grid_kernels){ .init = no_init,
		.path = "none" }, diag);
	device->spec = *spec;
	return err;
}

static enum hd_err null_done(struct hd_device *device, uint64_t *token)
{
	*token = ++((struct hd_grid *)device)->token;
	return HD_OK;
}

static enum hd_err null_load(struct hd_device *device, const struct hd_program *program, struct hd_diag *diag)
{
	(void)device;
	(void)program;
	(void)diag;
	return HD_OK;
}

static enum hd_err null_run(struct hd_device *device, const struct hd_program *program,
	enum hd_run_phase phase,
	const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag)
{
	(void)phase;
	if (!bind->nparts && bind->rows && hd_program_variant(program, bind->rows) == HD_NONE)
		return hd_fail(diag, HD_E_BUG, "device null: a slice of %llu rows was not prepared",
			(unsigned long long)bind->rows);
	return null_done(device, token);
}

static enum hd_err null_add(struct hd_device *device, float *dst, const float *a, const float *b,
	uint64_t len, uint64_t *token,
	struct hd_diag *diag)
{
	(void)diag;
	(void)dst;
	(void)a;
	(void)b;
	(void)len;
	return null_done(device, token);
}

static enum hd_err null_reduce(struct hd_device *device, const struct hd_reduction *reduction,
	uint64_t *token, struct hd_diag *diag)
{
	(void)diag;
	if (reduction->partial)
		memset(reduction->partial, 0, reduction->nsegments * sizeof *reduction->partial);
	return null_done(device, token);
}

static enum hd_err null_measure(struct hd_device *device, const struct hd_update *update,
	const struct hd_segment *segment, uint32_t n,
	double *param_sumsq, double *move_sumsq, uint64_t *token, struct hd_diag *diag)
{
	(void)diag;
	(void)update;
	(void)segment;
	memset(param_sumsq, 0, n * sizeof *param_sumsq);
	memset(move_sumsq, 0, n * sizeof *move_sumsq);
	return null_done(device, token);
}

static enum hd_err null_update(struct hd_device *device, const struct hd_update *update, uint64_t *token,
	struct hd_diag *diag)
{
	(void)diag;
	(void)update;
	return null_done(device, token);
}

const struct hd_device_ops hd_device_null = {
	.name = "null", .about = "computes nothing: results are zeros, costs come from the op table",
	.powers = HD_DEVICE_HOST_MEMORY | HD_DEVICE_NO_RESULT,
	.size = sizeof(struct hd_grid), .open = null_open, .take = hd_grid_take, .give = hd_grid_give,
	.write = hd_grid_move, .read = hd_grid_move, .load = null_load, .unload = hd_grid_unload,
	.run = null_run, .add = null_add,
	.reduce = null_reduce, .measure = null_measure, .update = null_update, .wait = hd_grid_wait,
	.close = hd_grid_close,
};
