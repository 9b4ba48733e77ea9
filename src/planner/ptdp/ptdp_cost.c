/* Of what a layer does, per virtual node of b q tokens on one of t devices, forward:
 *
 *   products    QKV [bq, H] x [H, 3H/t], scores and sums a/t b times [q, H/a] x [H/a, q] and [q, q] x [q,
 *   H/a], projection
 *               [bq, H/t] x [H/t, H], feed-forward [bq, H] x [H, 4H/t] and [bq, 4H/t] x [4H/t, H]
 *   traffic     of whole tensors [bq, H]: two norms (read, write: 4) and twice bias + dropout + residual
 *   (read two, write
 *               one and a mask of bytes: 7 with elements of two bytes); of shares 1/t: bias and GELU on
 *               4H (8), bias of QKV (6); of scores [a/t b, q, q]: softmax (read, write) and dropout (read,
 *               write, mask)
 *   sums        two over t, each 2 (t-1)/t of [bq, H]
 */
#include "planner/ptdp_cost.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/checked.h"

/* A100 80 GB: NVIDIA's data sheet (312e12 dense half-precision operations a second, 2039e9 bytes a second,
 * NVLink 600e9 both ways). Its server, the DGX A100 of the published runs: eight of them, eight HDR
 * InfiniBand cards of 200 Gb/s for training, as section 5 of the SC 2021 paper says. */
const struct hd_ptdp_device hd_ptdp_devices[] = {
	{ "a100-80gb", 312e12, 2039e9, 80000000000, 8, 300e9, 25e9, "A100 data sheet; 8 a server, an HDR card of 200 Gb/s each (SC 2021, section 5)" },
	{ 0 },
};

const struct hd_ptdp_shares hd_ptdp_guess = { .75, .8, .8 };
const struct hd_ptdp_shares hd_ptdp_fitted = { 0.71540817221745701, 0.69613343461873489,
	0.84461171957395997 };

/* Architecture, devices, batch, t, p and achieved TFLOP/s: table 1 of the SC 2021 paper. Micro-batch b,
 * layers a chunk (hence v) and full recomputation: its authors' script for that table, NVIDIA/Megatron-LM
 * examples/sc21/run_table_1.sh. */
#define RUN(name, l, h, a, t, p, n, batch, b, v, params, tflop) \
	{ name, { l, h, a, 51200, 2048 }, { t, p, (n) / ((t) * (p)), v, b, HD_PTDP_FULL }, n, batch, params, tflop }
const struct hd_ptdp_run hd_ptdp_runs[HD_PTDP_RUNS] = {
	RUN("1.7B",   24,  2304,  24,  1, 1,  32,   512,  16, 1, 1.7,    137),
	RUN("3.6B",   30,  3072,  32,  2, 1,  64,   512,  16, 1, 3.6,    138),
	RUN("7.5B",   36,  4096,  32,  4, 1,  128,  512,  16, 1, 7.5,    142),
	RUN("18.4B",  40,  6144,  48,  8, 1,  256,  1024, 8,  1, 18.4,   135),
	RUN("39.1B",  48,  8192,  64,  8, 2,  512,  1536, 4,  1, 39.1,   138),
	RUN("76.1B",  60,  10240, 80,  8, 4,  1024, 1792, 2,  3, 76.1,   140),
	RUN("145.6B", 80,  12288, 96,  8, 8,  1536, 2304, 2,  2, 145.6,  148),
	RUN("310.1B", 96,  16384, 128, 8, 16, 1920, 2160, 1,  2, 310.1,  155),
	RUN("529.6B", 105, 20480, 128, 8, 35, 2520, 2520, 1,  3, 529.6,  163),
	RUN("1008B",  128, 25600, 160, 8, 64, 3072, 3072, 1,  1, 1008.0, 163),
};
const uint32_t hd_ptdp_fit_rows[3] = { 0, 4, 9 };

#define PS 1e12
/* Half precision, also of gradients' sums; Adam reads the gradient, master and two slots, writes these
 * three and the weight. */
enum { ELEMENT = 2, SUM_ELEMENT = 2, UPDATE_BYTES = 30 };

/* Work of one layer, forward, on one device: operations, bytes of memory, bytes over the server's links. */
struct work { double flop, score_flop, traffic, score_traffic, sums; };

static struct work layer_work(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	bool sequence)
{
	double h = model->hidden, q = model->seq, a = model->heads, t = split->t, tokens = split->b * q,
		whole = tokens * h;

	return (struct work){
		.flop = 24 * tokens * h * h / t,
		.score_flop = 4 * tokens * q * h / t,
		.traffic = ELEMENT * whole * (11 / (sequence ? t : 1) + 14 / t),
		.score_traffic = split->b * a / t * q * q * (4 * ELEMENT + 1),
		.sums = t > 1 ? 2 * 2 * (t - 1) / t * whole * ELEMENT : 0,
	};
}

/* Seconds of a virtual node on the slowest stage, forward and backward together, and what of them is
 * backward. */
struct cost_spans { double products, memory, tensor, pipeline, forward, all; };

static struct cost_spans stage_spans(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	const struct hd_ptdp_site *site)
{
	const struct hd_ptdp_device *device = site->device;
	double layers = (model->layers + split->p - 1) / split->p, t = split->t;
	double tokens = (double)split->b * model->seq, whole = tokens * model->hidden * ELEMENT,
		logits = tokens * model->vocab / t;
	double flop_per_s = device->flop_per_s * site->shares.products,
		memory = device->memory_bytes_per_s * site->shares.memory;
	double inside = device->server_bytes_per_s * site->shares.network,
		outside = device->network_bytes_per_s * site->shares.network;
	double between = split->t * split->p <= device->per_server ? inside : outside;
	struct work work = layer_work(model, split, site->sequence);
	double again = split->recompute == HD_PTDP_FULL, scores_again = split->recompute != HD_PTDP_NONE;
	double head_flop = 2 * logits * model->hidden, head_traffic = logits * 4;
	/* once forward, once backward; the gathering inside the server likewise */
	double hop = split->p > 1 ? split->v * (whole / t / between + (site->sequence ? 0 :
		whole * (t - 1) / t / inside)) : 0;
	struct cost_spans s = {
		.products = (layers * (work.flop * (3 + again) + work.score_flop * (3 + scores_again)) + 3 *
			head_flop) / flop_per_s,
		.memory = (layers * (work.traffic * (3 + again) + work.score_traffic * (3 + scores_again)) +
		3 * head_traffic) / memory,
		.tensor = layers * work.sums * (2 + again) / inside,
		.pipeline = 2 * hop,
	};

	s.all = s.products + s.memory + s.tensor + s.pipeline;
	s.forward = (layers * (work.flop + work.score_flop) + head_flop) / flop_per_s
		+ (layers * (work.traffic + work.score_traffic) + head_traffic) / memory + layers *
			work.sums / inside + hop;
	return s;
}

/* Bytes per second at which a device of a data group sums (rule 2). */
static double data_bytes_per_s(const struct hd_ptdp_split *split, const struct hd_ptdp_site *site)
{
	const struct hd_ptdp_device *device = site->device;
	uint64_t pipeline = (uint64_t)split->t * split->p, here = device->per_server / pipeline;
	double cards = device->network_bytes_per_s * (double)(here ? here : 1);

	if (pipeline * split->d <= device->per_server || cards > device->server_bytes_per_s)
		cards = device->server_bytes_per_s;
	return cards * site->shares.network;
}

static int64_t whole(double x)
{
	int64_t out;

	return hd_i64_from_f64(ceil(x), &out) ? out : HD_PTDP_MOST;
}

static int64_t whole_ps(double seconds) { return whole(seconds * PS); }
static int64_t sum(int64_t a, int64_t b) { return a > HD_PTDP_MOST - b ? HD_PTDP_MOST : a + b; }

static uint32_t vns(const struct hd_ptdp_split *split, uint32_t batch)
{
	uint32_t samples = (batch + split->d - 1) / split->d;

	return (samples + split->b - 1) / split->b;
}

struct hd_ptdp_memory hd_ptdp_need(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t m, const struct hd_ptdp_site *site)
{
	enum hd_ptdp_state state = site->state;
	double t = split->t, h = model->hidden, p = split->p, v = split->v;
	double layers = (model->layers + split->p - 1) / split->p, table = model->vocab / t * h;
	double per_param = hd_ptdp_state_bytes(state, 1, 1), element = state == HD_PTDP_MIXED_ADAM ? 2 : 4;
	double kept = hd_ptdp_activation_bytes(model, split->b, split->t, site->sequence, split->recompute,
		(uint32_t)element);
	double inside = hd_ptdp_activation_bytes(model, split->b, split->t, site->sequence, HD_PTDP_NONE,
		(uint32_t)element);
	double logits = (double)split->b * model->seq * model->vocab / t * (element + 4);
	/* full ranks' activations in flight at most, of the first rank and of the last */
	double first = v > 1 ? (2 * (p - 1) + (v - 1) * p + 1) / v : p,
		last = v > 1 ? ((v - 1) * p + 1) / v : 1;
	struct hd_ptdp_memory most = { 0 };

	/* the first stage holds most in flight, the last the logits */
	for (uint32_t end = 0; end < 2; end++) {
		bool has_tables = end == 0, has_head = end == 1 || split->p == 1;
		double params = layers * hd_ptdp_layer_params(model) / t + (has_tables ?
			table + model->seq * h : 0) + (end == 1 && split->p > 1 ? table : 0);
		double flight = has_tables ? first : last;
		struct hd_ptdp_memory need = {
			.state = whole(params * per_param),
			.activations = whole((flight < m ? flight : m) * layers * kept),
			.work = whole((split->recompute == HD_PTDP_NONE ? 0 : inside) + (has_head ? logits :
			0)),
		};
		need.total = sum(sum(need.state, need.activations), need.work);
		if (need.total > most.total)
			most = need;
	}
	return most;
}

struct hd_ptdp_cost hd_ptdp_cost(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t batch,
	const struct hd_ptdp_site *site)
{
	struct hd_ptdp_cost cost = { .m = vns(split, batch) };
	struct cost_spans s = stage_spans(model, split, site);
	double params = hd_ptdp_params(model) / ((double)split->t * split->p), d = split->d;
	double data = 2 * (d - 1) / d * params * SUM_ELEMENT / data_bytes_per_s(split, site);
	double update = params * UPDATE_BYTES / (site->device->memory_bytes_per_s * site->shares.memory);

	assert(split->t && split->p && split->d && split->v && split->b);
	cost.forward_ps = whole_ps(s.forward);
	cost.backward_ps = whole_ps(s.all) - cost.forward_ps;
	cost.after_ps = whole_ps(data + update);
	double slots = hd_ptdp_slots(cost.m, split->p, split->v), step = slots * s.all + data + update;
	cost.step_ps = sum(whole_ps(slots * s.all), cost.after_ps);
	cost.products = cost.m * s.products / step;
	cost.memory = cost.m * s.memory / step;
	cost.tensor = cost.m * s.tensor / step;
	cost.pipeline = cost.m * s.pipeline / step;
	cost.bubble = (slots - cost.m) * s.all / step;
	cost.data = data / step;
	cost.update = update / step;
	cost.flop_per_s = hd_ptdp_flop(model, batch, split->recompute) / ((double)split->t * split->p *
		split->d) / step;
	cost.need = hd_ptdp_need(model, split, cost.m, site);
	return cost;
}

double hd_ptdp_utilization(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t batch, int64_t step_ps,
	const struct hd_ptdp_device *device)
{
	double devices = (double)split->t * split->p * split->d;

	return hd_ptdp_flop(model, batch,
		HD_PTDP_NONE) / devices / ((double)step_ps / PS) / device->flop_per_s;
}

double hd_ptdp_error(const struct hd_ptdp_run *run, const struct hd_ptdp_shares *shares,
	const struct hd_ptdp_device *device)
{
	struct hd_ptdp_site site = { device, *shares, HD_PTDP_MIXED_ADAM, 0, false };

	return hd_ptdp_cost(&run->model, &run->split, run->batch,
		&site).flop_per_s / (run->tflop_per_s * 1e12) - 1;
}

enum { FREE = 3, ROUNDS = 40 };

static struct hd_ptdp_shares shares_of(const double x[FREE])
{
	return (struct hd_ptdp_shares){ hd_ptdp_guess.products * x[0], hd_ptdp_guess.memory * x[1],
		hd_ptdp_guess.network * x[2] };
}

/* Solves a x = b, three by three, symmetric and positive: Cholesky's way. */
static void solve(double a[FREE][FREE], const double b[FREE], double x[FREE])
{
	double l[FREE][FREE] = { { 0 } };

	for (int i = 0; i < FREE; i++)
		for (int j = 0; j <= i; j++) {
			double sum = a[i][j];
			for (int k = 0; k < j; k++)
				sum -= l[i][k] * l[j][k];
			l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
		}
	for (int i = 0; i < FREE; i++) {
		x[i] = b[i];
		for (int k = 0; k < i; k++)
			x[i] -= l[i][k] * x[k];
		x[i] /= l[i][i];
	}
	for (int i = FREE; i-- > 0;) {
		for (int k = i + 1; k < FREE; k++)
			x[i] -= l[k][i] * x[k];
		x[i] /= l[i][i];
	}
}

/* Gauss and Newton's steps on x, the shares over their guesses: 3 % over 20 % is the weight of x - 1 (rule
 * 1). Slopes are differences; forty steps are four times what it takes. */
struct hd_ptdp_shares hd_ptdp_fit(const uint32_t *rows, uint32_t n, const struct hd_ptdp_device *device)
{
	const double hold = .03 / .2, width = 1e-6;
	double x[FREE] = { 1, 1, 1 };

	for (int round = 0; round < ROUNDS; round++) {
		double a[FREE][FREE] = { { 0 } }, b[FREE] = { 0 }, by[FREE];
		for (int i = 0; i < FREE; i++) {
			a[i][i] = hold * hold;
			b[i] = hold * hold * (1 - x[i]);
		}
		for (uint32_t r = 0; r < n; r++) {
			const struct hd_ptdp_run *run = &hd_ptdp_runs[rows[r]];
			struct hd_ptdp_shares at = shares_of(x);
			double error = hd_ptdp_error(run, &at, device), slope[FREE];
			for (int i = 0; i < FREE; i++) {
				double y[FREE] = { x[0], x[1], x[2] };
				y[i] += width;
				at = shares_of(y);
				slope[i] = (hd_ptdp_error(run, &at, device) - error) / width;
			}
			for (int i = 0; i < FREE; i++) {
				b[i] -= slope[i] * error;
				for (int j = 0; j < FREE; j++)
					a[i][j] += slope[i] * slope[j];
			}
		}
		solve(a, b, by);
		for (int i = 0; i < FREE; i++)
			x[i] += by[i];
	}
	return shares_of(x);
}
