#include "device/cpu/library.h"

#include <string.h>

#include "base/alloc.h"
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/dnnl.h"
#include "device/cpu/images.inc.h"
#include "device/cpu/matmul.inc.h"

/* What is prepared for a call: by [last row of tiles][last column of tiles]. */
struct prepared { struct hd_dnnl *of[2][2]; };

static enum hd_err prepared_take(struct prepared **made, struct hd_diag *diag)
{
	struct prepared *p = hd_alloc(sizeof *p);

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a prepared kernel");
	*p = (struct prepared){ 0 };
	*made = p;
	return HD_OK;
}

static enum hd_err prepared_end(struct prepared *p, void **prepared, enum hd_err err)
{
	if (err == HD_OK)
		*prepared = p;
	else
		hd_library_release(p);
	return err;
}

void hd_library_release(void *prepared)
{
	struct prepared *p = prepared;

	for (int i = 0; p && i < 4; i++)
		hd_dnnl_destroy(p->of[i / 2][i % 2]);
	hd_free(p);
}

size_t hd_library_scratch(const struct hd_call *call)
{
	const struct prepared *p = call->prepared;
	size_t most = 0;

	for (int i = 0; i < 4; i++)
		if (p->of[i / 2][i % 2]) {
			size_t bytes = hd_dnnl_scratch(p->of[i / 2][i % 2]);
			most = bytes > most ? bytes : most;
		}
	return most;
}

/* The gradient of a weight we fold as we go, and rows of small virtual nodes we take together: both beat the
 * library, which would be called for each. */
bool hd_library_matmul_takes(const struct hd_call *call)
{
	enum { LIBRARY_ROWS = 128 };
	return call->attr.i[0] == 0 && hd_rows(&call->in[0]) >= LIBRARY_ROWS;
}

/* Both operands are packed inside each of the library's calls, so its panels stay large; and its bits are
 * those of a panel's shape. */
static struct matmul library_grid(const struct hd_call *call)
{
	static const struct { int64_t rows, cols; } panel[] = {
		{ 336, 512 }, { 336, 256 }, { 168, 256 }, { 84, 256 }, { 84, 128 }, { 84, 64 },
	};
	const int64_t enough = 2, least = 1 << 20;     /* panels; multiply-adds of one */
	struct matmul g = matmul_of(call);

	g.ntall = g.nwide = 0;
	for (size_t i = 0; i < sizeof panel / sizeof panel[0]; i++) {
		int64_t rows = share(g.m, panel[i].rows, 14), cols = share(g.n, panel[i].cols, 32);
		if (i > 0 && (g.ntall * g.nwide >= enough || rows * cols * g.k < least))
			break;
		g.rows = rows;
		g.cols = cols;
		g.ntall = div_up(g.m, rows);
		g.nwide = div_up(g.n, cols);
	}
	return g;
}

uint32_t hd_library_matmul_ntiles(const struct hd_call *call)
{
	struct matmul g = library_grid(call);
	return (uint32_t)(g.ntall * g.nwide);
}

enum hd_err hd_library_matmul_prepare(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	struct matmul g = library_grid(call);
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	struct prepared *p = NULL;
	enum hd_err err = prepared_take(&p, diag);

	for (int i = 0; err == HD_OK && i < 4; i++) {
		bool tall = i / 2, wide = i % 2;          /* in the last row, in the last column */
		struct hd_dnnl_matmul shape = { tall ? g.m - (g.ntall - 1) * g.rows : g.rows,
			wide ? g.n - (g.nwide - 1) * g.cols : g.cols,
			g.k, ta ? g.m : g.k, tb ? g.k : g.n, g.n, ta, tb };
		if ((tall || g.ntall > 1) && (wide || g.nwide > 1))
			err = hd_dnnl_matmul_make(&p->of[tall][wide], &shape, diag);
	}
	return prepared_end(p, prepared, err);
}

void hd_library_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct prepared *p = call->prepared;
	struct matmul g = library_grid(call);
	int64_t row = tile % g.ntall, col = tile / g.ntall, i = row * g.rows, j = col * g.cols;
	const float *a = (const float *)call->in[0].at + (call->attr.i[0] ? i : i * g.k);
	const float *b = (const float *)call->in[1].at + (call->attr.i[1] ? j * g.k : j);

	hd_dnnl_run(p->of[row == g.ntall - 1][col == g.nwide - 1], a, b,
		(float *)call->out[0].at + i * g.n + j, scratch);
}

/* Convolutions and their input gradients: some samples to a tile, the last tile takes what is left. */
enum { CONV_TILES = 8 };
static int64_t samples_of_tile(int64_t n) { return div_up(n, CONV_TILES); }
static uint32_t sample_tiles(int64_t n) { return (uint32_t)div_up(n, samples_of_tile(n)); }

static struct hd_dnnl_conv shape_of(const struct conv *g, enum hd_dnnl_conv_kind kind, int64_t n)
{
	return (struct hd_dnnl_conv){ kind, n, g->c, g->h, g->w, g->k, g->r, g->s, g->p, g->q, g->sh, g->sw,
		g->ph, g->pw,
		g->groups, g->dh, g->dw };
}

/* The library has blocks of 16 channels; groups that are no whole blocks go through its plain loops, some
 * hundred times slower than a product. Depthwise kernels it has for whole blocks of groups. */
enum { CONV_BLOCK = 16 };
static bool library_is_slow(const struct conv *g)
{
	bool depthwise = g->own == 1 && g->each == 1;

	return g->groups > 1 && (depthwise ? g->groups % CONV_BLOCK != 0 : g->own % CONV_BLOCK != 0 ||
		g->each % CONV_BLOCK != 0);
}

static enum hd_err samples_prepare(const struct conv *g, enum hd_dnnl_conv_kind kind, void **prepared,
	struct hd_diag *diag)
{
	int64_t each = samples_of_tile(g->n), ntiles = sample_tiles(g->n);
	struct hd_dnnl_conv whole = shape_of(g, kind, each),
		last = shape_of(g, kind, g->n - (ntiles - 1) * each);
	struct prepared *p = NULL;
	enum hd_err err = prepared_take(&p, diag);

	if (err == HD_OK && ntiles > 1)
		err = hd_dnnl_conv_make(&p->of[0][0], &whole, diag);
	if (err == HD_OK)
		err = hd_dnnl_conv_make(&p->of[1][0], &last, diag);
	return prepared_end(p, prepared, err);
}

static void samples_tile(const struct hd_call *call, const struct conv *g, uint32_t tile, void *scratch)
{
	const struct prepared *p = call->prepared;
	const struct hd_operand *in = &call->in[0], *out = &call->out[0];
	int64_t first = tile * samples_of_tile(g->n);
	const float *from = (const float *)in->at + first * ((int64_t)in->elems / g->n);

	hd_dnnl_run(p->of[tile + 1 == sample_tiles(g->n)][0], from, call->in[1].at,
		(float *)out->at + first * ((int64_t)out->elems / g->n), scratch);
}

#define X(stem, cols) \
	bool hd_library_##stem##_takes(const struct hd_call *call) \
	{ struct conv g = stem##_of(call); return !library_is_slow(&g) && !conv_is_narrow(&g, g.cols); }
X(conv2d, q) X(conv2d_dx, w) X(conv2d_dw, q)
#undef X

uint32_t hd_library_conv2d_ntiles(const struct hd_call *call) { return sample_tiles(call->in[0].dim[0]); }
uint32_t hd_library_conv2d_dx_ntiles(const struct hd_call *call) { return sample_tiles(call->out[0].dim[0]); }
uint32_t hd_library_conv2d_dw_ntiles(const struct hd_call *call) { (void)call; return 1; }

enum hd_err hd_library_conv2d_prepare(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	struct conv g = conv2d_of(call);
	return samples_prepare(&g, HD_DNNL_CONV, prepared, diag);
}

enum hd_err hd_library_conv2d_dx_prepare(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	struct conv g = conv2d_dx_of(call);
	return samples_prepare(&g, HD_DNNL_CONV_DX, prepared, diag);
}

enum hd_err hd_library_conv2d_dw_prepare(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	struct conv g = conv2d_dw_of(call);
	struct hd_dnnl_conv shape = shape_of(&g, HD_DNNL_CONV_DW, g.n);
	struct prepared *p = NULL;

	enum hd_err err = prepared_take(&p, diag);
	if (err == HD_OK)
		err = hd_dnnl_conv_make(&p->of[0][0], &shape, diag);
	return prepared_end(p, prepared, err);
}

void hd_library_conv2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_of(call);

	samples_tile(call, &g, tile, scratch);
}

void hd_library_conv2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_dx_of(call);

	samples_tile(call, &g, tile, scratch);
}

void hd_library_conv2d_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct prepared *p = call->prepared;

	(void)tile;
	hd_dnnl_run(p->of[0][0], call->in[0].at, call->in[1].at, call->out[0].at, scratch);
}
