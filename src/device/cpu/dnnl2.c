/* oneDNN 2.x. Every object of the library is made in make() but the handles of operands
 * and the stream, which cannot be shared between threads that run at the same time. */
#include "device/cpu/dnnl.h"

#include <dnnl.h>
#include <string.h>

#include "base/alloc.h"

/* Declared here and not by its header, which the compiler has only with -fopenmp. */
extern void omp_set_num_threads(int n);

enum { NOPERANDS = 3, OUT = 2 };

/* One operand: as it lies in our memory, and as the primitive wants it. */
struct dnnl_side {
	dnnl_memory_desc_t plain, own;
	dnnl_primitive_t reorder;                 /* NULL: they are the same */
	int arg;
	size_t at_bytes;                          /* of the reordered copy in scratch */
};

struct hd_dnnl {
	dnnl_engine_t engine;
	dnnl_primitive_t primitive;
	struct dnnl_side side[NOPERANDS];
	dnnl_memory_desc_t pad;                   /* the primitive's own scratch */
	size_t pad_at_bytes, scratch_bytes;
};

bool hd_dnnl_present(void) { return true; }

/* The cache of primitives would hold on to what we have destroyed; the plan is our cache. */
void hd_dnnl_thread_init(void)
{
	omp_set_num_threads(1);
	(void)dnnl_set_primitive_cache_capacity(0);
}

static enum hd_err check(dnnl_status_t status, const char *what, struct hd_diag *diag)
{
	if (status == dnnl_success)
		return HD_OK;
	if (status == dnnl_out_of_memory)
		return hd_fail(diag, HD_E_NOMEM, "oneDNN: no memory for %s", what);
	return hd_fail(diag, HD_E_REFUSED, "oneDNN refuses %s (status %d); set kernels: portable", what,
		(int)status);
}

static size_t place(struct hd_dnnl *d, size_t len_bytes)
{
	size_t at = d->scratch_bytes;

	d->scratch_bytes += (len_bytes + 63) / 64 * 64;
	return at;
}

/* Where the layouts differ: a copy in scratch, and a primitive that makes it or takes it back. */
static enum hd_err settle(struct hd_dnnl *d, int i, const dnnl_memory_desc_t *own, struct hd_diag *diag)
{
	struct dnnl_side *side = &d->side[i];
	dnnl_primitive_desc_t desc = NULL;
	bool out = i == OUT;

	side->own = *own;
	if (dnnl_memory_desc_equal(&side->plain, own))
		return HD_OK;
	side->at_bytes = place(d, dnnl_memory_desc_get_size(own));
	enum hd_err err = check(dnnl_reorder_primitive_desc_create(&desc, out ? own : &side->plain, d->engine,
		out ? &side->plain : own, d->engine, NULL), "a reorder", diag);
	if (err == HD_OK)
		err = check(dnnl_primitive_create(&side->reorder, desc), "a reorder", diag);
	dnnl_primitive_desc_destroy(desc);
	return err;
}

/* The primitive of `op` with its scratch in our hands. */
static enum hd_err finish(struct hd_dnnl *d, const_dnnl_op_desc_t op, dnnl_primitive_desc_t hint,
	const dnnl_query_t query[NOPERANDS],
	const char *what, struct hd_diag *diag)
{
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t desc = NULL;
	enum hd_err err = check(dnnl_primitive_attr_create(&attr), what, diag);

	if (err == HD_OK)
		err = check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), what,
			diag);
	if (err == HD_OK)
		err = check(dnnl_primitive_desc_create(&desc, op, attr, d->engine, hint), what, diag);
	if (err == HD_OK)
		err = check(dnnl_primitive_create(&d->primitive, desc), what, diag);
	for (int i = 0; err == HD_OK && i < NOPERANDS; i++)
		err = settle(d, i, dnnl_primitive_desc_query_md(desc, query[i], 0), diag);
	if (err == HD_OK) {
		d->pad = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
		d->pad_at_bytes = place(d, dnnl_memory_desc_get_size(&d->pad));
	}
	dnnl_primitive_desc_destroy(desc);
	dnnl_primitive_attr_destroy(attr);
	return err;
}

static enum hd_err begin(struct hd_dnnl **made, struct hd_diag *diag)
{
	struct hd_dnnl *d = hd_alloc(sizeof *d);

	if (!d)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a prepared kernel");
	memset(d, 0, sizeof *d);
	hd_dnnl_thread_init();
	*made = d;
	return check(dnnl_engine_create(&d->engine, dnnl_cpu, 0), "an engine", diag);
}

static enum hd_err end(struct hd_dnnl **made, struct hd_dnnl *d, enum hd_err err)
{
	if (err == HD_OK)
		*made = d;
	else
		hd_dnnl_destroy(d);
	return err;
}

static dnnl_status_t matrix(dnnl_memory_desc_t *desc, int64_t rows, int64_t cols, int64_t step, bool turned)
{
	dnnl_dims_t dims = { rows, cols }, strides = { turned ? 1 : step, turned ? step : 1 };

	return dnnl_memory_desc_init_by_strides(desc, 2, dims, dnnl_f32, strides);
}

enum hd_err hd_dnnl_matmul_make(struct hd_dnnl **made, const struct hd_dnnl_matmul *s, struct hd_diag *diag)
{
	static const dnnl_query_t query[NOPERANDS] = { dnnl_query_src_md, dnnl_query_weights_md,
		dnnl_query_dst_md };
	static const int arg[NOPERANDS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };
	struct hd_dnnl *d = NULL;
	dnnl_matmul_desc_t op;
	enum hd_err err = begin(&d, diag);

	for (int i = 0; d && i < NOPERANDS; i++)
		d->side[i].arg = arg[i];
	if (err == HD_OK)
		err = check(matrix(&d->side[0].plain, s->m, s->k, s->astep, s->ta), "a matrix", diag);
	if (err == HD_OK)
		err = check(matrix(&d->side[1].plain, s->k, s->n, s->bstep, s->tb), "a matrix", diag);
	if (err == HD_OK)
		err = check(matrix(&d->side[2].plain, s->m, s->n, s->cstep, false), "a matrix", diag);
	if (err == HD_OK)
		err = check(dnnl_matmul_desc_init(&op, &d->side[0].plain, &d->side[1].plain, NULL,
			&d->side[2].plain), "a product", diag);
	if (err == HD_OK)
		err = finish(d, &op, NULL, query, "a product", diag);
	return end(made, d, err);
}

/* What role each of x, w, y plays, by kind: their places among our operands, and their names. */
static const struct role {
	int place[3];                             /* of x, w, y */
	int arg[3];
	dnnl_query_t query[3];
} roles[] = {
	[HD_DNNL_CONV] = { { 0, 1, 2 }, { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
		{ dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md } },
	[HD_DNNL_CONV_DX] = { { 2, 1, 0 }, { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
		{ dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md } },
	[HD_DNNL_CONV_DW] = { { 1, 2, 0 }, { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
		{ dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md } },
};

/* Plain layouts for our side, the library's choice for its own: with plain layouts on both
 * sides it would take its slow path. */
static enum hd_err images(struct hd_dnnl *d, const struct hd_dnnl_conv *s, dnnl_memory_desc_t any[3],
	struct hd_diag *diag)
{
	dnnl_dims_t dims[3] = { { s->n, s->c, s->h, s->w }, { s->k, s->c, s->r, s->s },
		{ s->n, s->k, s->p, s->q } };
	dnnl_dims_t grouped = { s->groups, s->k / s->groups, s->c / s->groups, s->r, s->s };
	enum hd_err err = HD_OK;

	for (int i = 0; err == HD_OK && i < 3; i++) {
		struct dnnl_side *side = &d->side[roles[s->kind].place[i]];
		bool kernels = i == 1 && s->groups > 1;           /* then with an extent more */
		const int64_t *dim = kernels ? grouped : dims[i];
		side->arg = roles[s->kind].arg[i];
		err = check(dnnl_memory_desc_init_by_tag(&side->plain, kernels ? 5 : 4, dim, dnnl_f32,
			kernels ? dnnl_abcde : dnnl_abcd), "an image", diag);
		if (err == HD_OK)
			err = check(dnnl_memory_desc_init_by_tag(&any[i], kernels ? 5 : 4, dim, dnnl_f32,
				dnnl_format_tag_any), "an image", diag);
	}
	return err;
}

static enum hd_err convolve(struct hd_dnnl *d, const struct hd_dnnl_conv *s, const dnnl_memory_desc_t any[3],
	struct hd_diag *diag)
{
	const struct role *role = &roles[s->kind];
	dnnl_dims_t strides = { s->sh, s->sw }, before = { s->ph, s->pw }, between = { s->dh - 1, s->dw - 1 };
	/* what the last window needs beyond the image on the far side */
	dnnl_dims_t after = { (s->p - 1) * s->sh + (s->r - 1) * s->dh + 1 - s->h - s->ph,
		(s->q - 1) * s->sw + (s->s - 1) * s->dw + 1 - s->w - s->pw };
	dnnl_convolution_desc_t forward, op;
	dnnl_primitive_desc_t hint = NULL;
	dnnl_query_t query[NOPERANDS];
	enum hd_err err = check(dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training,
		dnnl_convolution_direct,
		&any[0], &any[1], NULL, &any[2], strides, between, before, after), "a convolution", diag);

	for (int i = 0; i < 3; i++)
		query[role->place[i]] = role->query[i];
	if (err != HD_OK || s->kind == HD_DNNL_CONV)
		return err == HD_OK ? finish(d, &forward, NULL, query, "a convolution", diag) : err;
	err = check(dnnl_primitive_desc_create(&hint, &forward, NULL, d->engine, NULL), "a convolution",
		diag);
	if (err == HD_OK && s->kind == HD_DNNL_CONV_DX)
		err = check(dnnl_dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct,
			&any[0], &any[1], &any[2],
			strides, between, before, after), "a convolution's gradient", diag);
	if (err == HD_OK && s->kind == HD_DNNL_CONV_DW)
		err = check(dnnl_dilated_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct,
			&any[0], &any[1], NULL, &any[2],
			strides, between, before, after), "a convolution's gradient", diag);
	if (err == HD_OK)
		err = finish(d, &op, hint, query, "a convolution's gradient", diag);
	dnnl_primitive_desc_destroy(hint);
	return err;
}

enum hd_err hd_dnnl_conv_make(struct hd_dnnl **made, const struct hd_dnnl_conv *s, struct hd_diag *diag)
{
	dnnl_memory_desc_t any[3];
	struct hd_dnnl *d = NULL;
	enum hd_err err = begin(&d, diag);

	if (err == HD_OK)
		err = images(d, s, any, diag);
	if (err == HD_OK)
		err = convolve(d, s, any, diag);
	return end(made, d, err);
}

void hd_dnnl_destroy(struct hd_dnnl *d)
{
	if (!d)
		return;
	for (int i = 0; i < NOPERANDS; i++)
		dnnl_primitive_destroy(d->side[i].reorder);
	dnnl_primitive_destroy(d->primitive);
	dnnl_engine_destroy(d->engine);
	hd_free(d);
}

size_t hd_dnnl_scratch(const struct hd_dnnl *d) { return d->scratch_bytes; }

/* Handles of one run: of each operand as ours and as the primitive's, and of its scratch. */
struct handles { dnnl_stream_t stream; dnnl_memory_t plain[NOPERANDS], own[NOPERANDS], pad; };

static dnnl_status_t hold(const struct hd_dnnl *d, void *const at[NOPERANDS], uint8_t *scratch,
	struct handles *h)
{
	dnnl_status_t status = dnnl_stream_create(&h->stream, d->engine, dnnl_stream_default_flags);

	for (int i = 0; status == dnnl_success && i < NOPERANDS; i++) {
		const struct dnnl_side *side = &d->side[i];
		status = dnnl_memory_create(&h->plain[i], &side->plain, d->engine, at[i]);
		if (status == dnnl_success && side->reorder)
			status = dnnl_memory_create(&h->own[i], &side->own, d->engine,
				scratch + side->at_bytes);
	}
	return status == dnnl_success ? dnnl_memory_create(&h->pad, &d->pad, d->engine,
		scratch + d->pad_at_bytes) : status;
}

static void release(struct handles *h)
{
	for (int i = 0; i < NOPERANDS; i++) {
		dnnl_memory_destroy(h->plain[i]);
		dnnl_memory_destroy(h->own[i]);
	}
	dnnl_memory_destroy(h->pad);
	dnnl_stream_destroy(h->stream);
}

static dnnl_status_t reorder(const struct hd_dnnl *d, int i, struct handles *h)
{
	bool out = i == OUT;
	dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, out ? h->own[i] : h->plain[i] },
		{ DNNL_ARG_TO, out ? h->plain[i] : h->own[i] } };

	return d->side[i].reorder ? dnnl_primitive_execute(d->side[i].reorder, h->stream, 2, arg) :
		dnnl_success;
}

static dnnl_status_t execute(const struct hd_dnnl *d, struct handles *h)
{
	dnnl_exec_arg_t arg[NOPERANDS + 1] = { [NOPERANDS] = { DNNL_ARG_SCRATCHPAD, h->pad } };
	dnnl_status_t status = dnnl_success;

	for (int i = 0; i < NOPERANDS; i++)
		arg[i] = (dnnl_exec_arg_t){ d->side[i].arg, d->side[i].reorder ? h->own[i] : h->plain[i] };
	for (int i = 0; status == dnnl_success && i < OUT; i++)
		status = reorder(d, i, h);
	if (status == dnnl_success)
		status = dnnl_primitive_execute(d->primitive, h->stream, NOPERANDS + 1, arg);
	return status == dnnl_success ? reorder(d, OUT, h) : status;
}

/* All of it: one element could be dropped or pooled away before a guard sees it, and the
 * others would be what lay there. Rows may lie in a wider matrix, whose rest is another tile's. */
static void spoil(const dnnl_memory_desc_t *plain, float *out)
{
	size_t row = 1;

	for (int d = 1; d < plain->ndims; d++)
		row *= (size_t)plain->dims[d];
	for (dnnl_dim_t i = 0; i < plain->dims[0]; i++)
		memset(out + i * plain->format_desc.blocking.strides[0], 0xff, row * sizeof *out);
}

void hd_dnnl_run(const struct hd_dnnl *d, const void *a, const void *b, void *out, void *scratch)
{
	void *const at[NOPERANDS] = { (void *)(uintptr_t)a, (void *)(uintptr_t)b, out };
	struct handles h = { 0 };
	dnnl_status_t status = hold(d, at, scratch, &h);

	if (status == dnnl_success)
		status = execute(d, &h);
	release(&h);
	if (status != dnnl_success)
		spoil(&d->side[OUT].plain, out);
}
