#include <math.h>

#include "graph/far_end.h"
#include "gnn/testing_models.h"

/* A graph in several intervals: lists (data/graph_layout.h) against the matrix that the graph was made of;
 * training (engine/lockstep.h, meeting.h) against one interval, and on devices and workers against one
 * device. Here, as rooms below cannot prepare a graph. */

/* ---- lists ---- */

/* The place of each edge among all, by target, then source, as rows ascend. */
static void number_edges(const struct known *k, const int *id, int64_t rows, int32_t (*number)[TG_MOST])
{
	int32_t n = 0;

	assert_true(rows <= TG_MOST);
	for (int64_t to = 0; to < rows; to++)
		for (int64_t from = 0; from < rows; from++)
			if (id[to] >= 0 && id[from] >= 0 && (to == from || k->edge[id[from]][id[to]]))
				number[from][to] = n++;
}

/* Each edge of the matrix once, ascending by near row and by vertex at the far end. */
static void check_ends(const struct known *k, const struct hd_graph_layout *l, const struct hd_graph_ends *e,
	const int *id, bool back)
{
	static uint8_t seen[TG_MOST][TG_MOST];
	static int32_t number[TG_MOST][TG_MOST];

	memset(seen, 0, sizeof seen);
	number_edges(k, id, (int64_t)(l->n * l->rows), number);
	for (uint32_t i = 0; i < l->n; i++) {
		int64_t last = -1;
		for (uint64_t p = 0; p < l->rows * e->edges; p++) {
			int64_t far = e->far[i * l->rows * e->edges + p],
				near = e->near[i * l->rows * e->edges + p];
			if (far < 0) {
				assert_int_equal(near, -1);
				assert_int_equal(e->number[i * l->rows * e->edges + p], -1);
				continue;
			}
			assert_in_range(far, 0, l->rows * (1 + e->ghosts) - 1);
			far = far < (int64_t)l->rows ? i * (int64_t)l->rows + far :
				e->ghost[i * l->rows * e->ghosts + (uint64_t)far - l->rows];
			near += i * (int64_t)l->rows;
			const int64_t place = near * (int64_t)(l->n * l->rows) + far;
			CHECK(place > last, "virtual node %u, place %d: out of order", i, (int)p);
			last = place;
			assert_true(id[far] >= 0 && id[near] >= 0);
			assert_int_equal(e->number[i * l->rows * e->edges + p],
				number[back ? near : far][back ? far : near]);
			seen[id[back ? near : far]][id[back ? far : near]]++;
		}
	}
	for (uint32_t a = 0; a < k->n; a++)
		for (uint32_t b = 0; b < k->n; b++)
			CHECK(seen[a][b] == (a == b || k->edge[a][b]), "edge %u to %u: %u times", a, b,
				seen[a][b]);
}

static void lists_of_all_virtual_nodes_are_the_graph(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int kind = 0; kind < 2; kind++)
		for (uint32_t n = 1; n <= INTERVALS; n *= 2) {
			struct hd_prepared_file file = { 0 };
			struct hd_graph_layout l;
			struct hd_graph_ends ends;
			struct hd_arena arena;
			struct hd_diag diag = { "" };
			int id[INTERVALS * VERTICES];
			hd_arena_init(&arena, 0);
			CHECK(!hd_prepared_open(&file, &g.fs, g.path[kind], true, &diag) &&
				!hd_graph_layout_make(&l, &file.graph, "g", n, &arena, &diag), "%s",
				diag.text);
			assert_true(n > 1 || l.rows == VERTICES);
			ids_of_rows(&g, kind, n, l.rows, id);
			for (int back = 0; back < 2; back++) {
				CHECK(hd_graph_ends_make(&l, back, &ends, &arena, &diag) == HD_OK, "%s",
					diag.text);
				check_ends(g.known[kind], &l, &ends, id, back);
			}
			hd_prepared_close(&file);
			hd_arena_finish(&arena);
		}
	drop_graphs(&g);
}

/* ---- training ---- */

static void devices_have_the_bits_of_one(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int model = 0; model < NMODELS; model++)
		for (uint32_t n = 2; n <= INTERVALS; n *= 2) {
			struct hd_rig one, rig;
			const int kind = model % 2;
			for (uint32_t d = 2; d <= 3; d++) {
				open_rig(&g, &one, model, kind, n, "0.4", adam, 1);
				open_rig(&g, &rig, model, kind, n, "0.4", adam, d);
				assert_true(hd_worker_lockstep(rig.worker));
				for (int s = 0; s < 3; s++) {
					struct hd_step_record a = hd_rig_step(&one), b = hd_rig_step(&rig);
					CHECK(hd_hash_same(a.digest, b.digest) && a.loss_sum == b.loss_sum,
						"%s, %u intervals on %u devices, step %d",
						models[model].name, n, d, s);
				}
				hd_rig_close(&one);
				hd_rig_close(&rig);
			}
		}
	drop_graphs(&g);
}

/* Losses of the rows are the same bits, so their sums in f64 differ by its rounding alone; gradients, which
 * are sums over rows, by that of f32. */
static void compare_to_one(const struct hd_rig *one, const float *before, const struct hd_rig *rig,
	const char *what)
{
	const struct hd_layout *layout = &one->task->layout;
	const float *a = hd_rig_params(one), *b = hd_rig_params(rig);

	for (uint32_t p = 0; p < one->task->train.nparams; p++) {
		double most = 0, off = 0;
		for (uint64_t at = layout->at[p]; at < layout->at[p] + layout->len[p]; at++) {
			most = fmax(most, fabs((double)before[at] - (double)a[at]));
			off = fmax(off, fabs((double)b[at] - (double)a[at]));
		}
		CHECK(most > 0 && off <= 1e-5 * most, "%s: gradient of parameter %u: %g, off by %g", what, p,
			most,
			off);
	}
}

static void intervals_compute_what_one_does(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int model = 0; model < NMODELS; model++)
		for (int kind = 0; kind < 2; kind++) {
			struct hd_rig one, rig;
			char what[64];
			open_rig(&g, &one, model, kind, 1, "0", plain, 1);
			assert_false(hd_worker_lockstep(one.worker));
			const uint64_t len = one.task->layout.elems * sizeof(float);
			float *before = malloc(len);
			memcpy(before, hd_rig_params(&one), len);
			const struct hd_step_record a = hd_rig_step(&one);
			for (uint32_t n = 2; n <= INTERVALS; n *= 2) {
				snprintf(what, sizeof what, "%s, kind %d, %u intervals",
					models[model].name, kind, n);
				open_rig(&g, &rig, model, kind, n, "0", plain, 2);
				const struct hd_step_record b = hd_rig_step(&rig);
				CHECK(fabs(a.loss_sum - b.loss_sum) <= 1e-13 * a.loss_sum &&
					a.correct == b.correct &&
					a.weight == b.weight, "%s: loss %.17g, %.17g", what, a.loss_sum,
					b.loss_sum);
				compare_to_one(&one, before, &rig, what);
				hd_rig_close(&rig);
			}
			free(before);
			hd_rig_close(&one);
		}
	drop_graphs(&g);
}

/* The mean loss of the first step, with parameters so far from those along `by`. */
static double first_loss(struct graphs *g, int model, const float *from, const double *by, double how_far)
{
	struct hd_rig rig;

	open_rig(g, &rig, model, model % 2, 4, "0.4", plain, 1);
	for (uint64_t i = 0; i < rig.task->layout.elems; i++)
		hd_rig_params(&rig)[i] = (float)((double)from[i] + how_far * by[i]);
	const struct hd_step_record r = hd_rig_step(&rig);
	hd_rig_close(&rig);
	return r.loss_sum / r.weight;
}

/* What is dropped follows from the step, so the loss is a function of the parameters. Along its gradient it
 * rises by the gradient's length; where the sources' end drew other edges it would not. */
static void both_ends_of_an_edge_drop_it_alike(void **state)
{
	static const double step = 0.005;
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int model = 0; model < NMODELS; model++) {
		struct hd_rig at;
		open_rig(&g, &at, model, model % 2, 4, "0.4", plain, 1);
		const uint64_t n = at.task->layout.elems;
		float *before = malloc(n * sizeof *before);
		double *by = malloc(n * sizeof *by), len = 0, loss[2];
		memcpy(before, hd_rig_params(&at), n * sizeof *before);
		(void)hd_rig_step(&at);
		for (uint64_t i = 0; i < n; i++) {
			by[i] = (double)before[i] - (double)hd_rig_params(&at)[i];
			len += by[i] * by[i];
		}
		len = sqrt(len);
		for (int k = 0; k < 2; k++)
			loss[k] = first_loss(&g, model, before, by, (k ? step : -step) / len);
		const double slope = (loss[1] - loss[0]) / (2 * step);
		CHECK(len > 0 && fabs(slope - len) <= 0.02 * len,
			"%s: the loss rises by %g, its gradient is %g long", models[model].name, slope, len);
		hd_rig_close(&at);
		free(before), free(by);
	}
	drop_graphs(&g);
}

/* Nothing is sent twice: forwards rows and scores, backwards the gradient, scores, what a softmax keeps, sums
 * of products. */
static void attention_meets_six_times_a_layer(void **state)
{
	static const struct { int model; uint32_t layers, each; } want[] = { { 2, 2, 6 }, { 3, 3, 6 },
		{ 0, 2, 2 } };
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int k = 0; k < 3; k++) {
		struct hd_rig rig;
		open_rig(&g, &rig, want[k].model, 0, 4, "0.4", plain, 1);
		assert_int_equal(hd_lockstep_meetings(&rig.task->train), want[k].layers * want[k].each);
		hd_rig_close(&rig);
	}
	drop_graphs(&g);
}

/* Jobs with other widths have tables of the same size. */
static void rows_that_meet_count_once(void **state)
{
	struct hd_memory_terms narrow, wide;
	struct graphs g;
	struct hd_rig a, b;

	(void)state;
	make_graphs(&g);
	open_rig(&g, &a, 0, 0, 4, "0", plain, 1);
	open_rig(&g, &b, WIDE, 0, 4, "0", plain, 1);
	hd_worker_memory(a.worker, &narrow);
	hd_worker_memory(b.worker, &wide);
	const uint64_t rows = hd_lockstep_bytes(&b.task->train, b.task->job);
	assert_true(rows >= 2 * 4000 * sizeof(float) * VERTICES && wide.arenas - narrow.arenas >= rows / 2);
	CHECK(wide.own - narrow.own < rows / 4, "%d bytes of tables more for %d of rows",
		(int)(wide.own - narrow.own), (int)rows);
	hd_rig_close(&a);
	hd_rig_close(&b);
	drop_graphs(&g);
}

/* ---- evaluation ---- */

struct logits { float at[VERTICES][CLASSES]; const int *id; };

static void keep_logits(void *user, uint64_t first, uint64_t n, const float *logits)
{
	struct logits *l = user;

	for (uint64_t r = 0; r < n; r++)
		if (l->id[first + r] >= 0)
			memcpy(l->at[l->id[first + r]], logits + r * CLASSES, sizeof l->at[0]);
}

static struct hd_metrics evaluate(struct hd_rig *rig, struct logits *l, const int *id)
{
	const uint32_t test = hd_dataset_split(rig->task->data, "test");
	const struct hd_forward_job job = { .split = test, .count = rig->task->data->split[test].count,
		.logits = keep_logits, .user = l };
	struct hd_metrics m;
	struct hd_diag diag = { "" };

	l->id = id;
	CHECK(hd_worker_forward(rig->worker, &job, &m, &diag) == HD_OK, "%s", diag.text);
	return m;
}

static void evaluation_takes_the_graph_whole(void **state)
{
	static struct logits want, got;
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int model = 0; model < NMODELS; model++) {
		int id[INTERVALS * VERTICES];
		struct hd_rig one, rig;
		open_rig(&g, &one, model, 0, 1, "0.4", plain, 1);
		ids_of_rows(&g, 0, 1, VERTICES, id);
		const struct hd_metrics a = evaluate(&one, &want, id);
		open_rig(&g, &rig, model, 0, 4, "0.4", plain, 2);
		ids_of_rows(&g, 0, 4, rows_of(&g, 0, 4), id);
		const struct hd_metrics b = evaluate(&rig, &got, id);
		assert_true(a.weight > 0 && a.weight == b.weight && a.correct == b.correct);
		CHECK(memcmp(want.at, got.at, sizeof want.at) == 0, "%s: logits", models[model].name);
		hd_rig_close(&one);
		hd_rig_close(&rig);
	}
	drop_graphs(&g);
}

/* What is predicted for activations is the same on any number of devices: each virtual node's, and the whole
 * graph's once. No device but the first can evaluate, whichever comes first. */
static void the_room_to_evaluate_is_there_once(void **state)
{
	static struct logits l;
	struct graphs g;
	struct hd_metrics first = { 0 };
	uint64_t arenas = 0, inputs = 0;
	int id[INTERVALS * VERTICES];

	(void)state;
	make_graphs(&g);
	for (uint32_t d = 1; d <= 4; d++) {
		struct hd_memory_terms t;
		struct hd_rig rig;
		open_rig(&g, &rig, 0, 0, INTERVALS, "0.4", plain, d);
		ids_of_rows(&g, 0, INTERVALS, rows_of(&g, 0, INTERVALS), id);
		hd_worker_memory(rig.worker, &t);
		for (uint32_t r = 0; r < d; r++)
			CHECK(!r == (rig.worker->rank[r].activations != NULL) &&
				!r == (rig.worker->rank[r].eval_input[0] != NULL), "device %u of %u", r, d);
		assert_true(t.process > rig.task->data->table_bytes && rig.task->data->table_bytes > 0);
		for (int times = 0; times < 3; times++) {
			const struct hd_metrics m = evaluate(&rig, &l, id);
			first = d == 1 ? m : first;
			assert_true(m.loss_sum == first.loss_sum && m.correct == first.correct);
		}
		arenas = d == 1 ? t.arenas : arenas;
		inputs = d == 1 ? t.inputs : inputs;
		CHECK(t.arenas == arenas && t.inputs <= inputs, "%u devices: %llu of activations, not %llu; "
			"%llu of inputs", d, (unsigned long long)t.arenas, (unsigned long long)arenas,
			(unsigned long long)t.inputs);
		hd_rig_close(&rig);
	}
	drop_graphs(&g);
}

/* ---- workers ---- */

static void open_net(struct graphs *g, struct net *net, int model, uint32_t n, uint32_t nranks, uint32_t each)
{
	memset(net, 0, sizeof *net);
	open_rig(g, &net->one, model, model % 2, n, "0.4", adam, 1);
	add_data_parallel(net, nranks, each, "a graph in intervals");
}

/* With and without a fence at some letter: a step that it ended is begun again. */
static void workers_have_the_bits_of_one_device(void **state)
{
	static const struct { uint32_t n, nranks, each; } kinds[] = { { 2, 2, 1 }, { 4, 3, 1 }, { 8, 4, 2 },
		{ 8, 5, 1 }, { 8, 3, 1 } };
	struct net *net = malloc(sizeof *net);
	struct graphs g;
	uint32_t stale = 0;

	(void)state;
	make_graphs(&g);
	seed = 8;
	for (int k = 0; k < 5; k++)
		for (int fenced = 0; fenced < 2; fenced++) {
			open_net(&g, net, k % NMODELS, kinds[k].n, kinds[k].nranks, kinds[k].each);
			for (int i = 0; i < STEPS; i++) {
				net->fence_after = fenced ? 1 + draw(8) : 0;
				step(net, "a graph in intervals");
			}
			stale += net->stale;
			close_net(net);
		}
	assert_true(stale > 2);
	drop_graphs(&g);
	free(net);
}

static const struct hd_sync *sync_of(const struct hd_worker *w, uint32_t k)
{
	const struct hd_lockstep *l = &w->stage->lockstep;

	return k < l->nsyncs[HD_RUN_F] ? &l->sync[HD_RUN_F][k] :
		&l->sync[HD_RUN_B][k - l->nsyncs[HD_RUN_F]];
}

static uint16_t worker_of(const struct net *net, uint32_t interval)
{
	return net->plan.worker[net->plan.map[interval / (INTERVALS / net->plan.nvns)]];
}

/* Bytes of whole pages of a block that hold MARK still. */
enum { MARK = 0xa5 };
static uint64_t untouched(const uint8_t *at, uint64_t len)
{
	uint64_t i = 0;

	while (i < len && at[i] == MARK)
		i++;
	return i == len ? len : 0;
}

/* A worker's inputs are the rows of its intervals; where another one evaluates, its room for that, rows and
 * activations, is counted and never written to. */
static void rows_of_others_are_in_no_prediction(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct graphs g;

	(void)state;
	make_graphs(&g);
	open_net(&g, net, 0, INTERVALS, 3, 1);
	const uint64_t rows = rows_of(&g, 0, INTERVALS);
	for (uint32_t i = 0; i < net->n; i++) {
		struct hd_worker *w = net->at[i].worker;
		const struct hd_dist_view view = { .plan = &net->plan, .worker = (uint16_t)i, .rests = true,
			.nplaces = (1 + MOST_PIECES) * MOST_ROOTS };
		struct hd_memory_terms with, rests;
		uint64_t row = 0, own = 0;
		for (uint32_t f = 0; f < w->task->data->nfields; f++)
			row += w->task->data->field[f].sample_bytes;
		for (uint32_t v = 0; v < INTERVALS; v++)
			own += worker_of(net, v) == i;
		assert_true(own > 1 && own < 4);
		hd_worker_memory(w, &with);
		/* what evaluates has the whole graph besides */
		const uint64_t depth = hd_worker_reading(w).depth, whole = row * INTERVALS * rows;
		CHECK(with.inputs - with.idle_inputs == whole + row * depth * own * rows, "worker %u: %llu",
			i, (unsigned long long)(with.inputs - with.idle_inputs));
		assert_int_equal(hd_dist_prepare(w, &view, NULL), HD_OK);
		hd_dist_adopt(w);
		hd_worker_memory(w, &rests);
		assert_true(rests.inputs == with.inputs && rests.arenas == with.arenas);
		assert_int_equal(rests.inputs - rests.idle_inputs, row * depth * own * rows);
		const uint64_t room = hd_worker_activation_bytes(w);
		assert_int_equal(rests.idle_arenas - with.idle_arenas, room);
		memset(w->rank[0].activations, MARK, room);
		memset(w->rank[0].eval_input[0], MARK, w->task->data->field[0].sample_bytes * rows);
	}
	step(net, models[0].name);
	for (uint32_t i = 0; i < net->n; i++) {
		const struct hd_worker *w = net->at[i].worker;
		const uint64_t bytes = w->task->data->field[0].sample_bytes * rows;
		assert_int_equal(untouched(w->rank[0].activations, hd_worker_activation_bytes(w)),
			hd_worker_activation_bytes(w));
		assert_int_equal(untouched((const uint8_t *)w->rank[0].eval_input[0], bytes), bytes);
	}
	close_net(net);
	drop_graphs(&g);
	free(net);
}

/* How many vertices the halo lists of the file have from the intervals of one worker to those of another. */
static uint64_t rows_read(const struct net *net, const struct hd_prepared *graph, uint16_t from, uint16_t to,
	bool back)
{
	const struct hd_halo *halo = back ? &graph->halo_back : &graph->halo;
	bool is[VERTICES] = { false };
	uint64_t n = 0;

	for (uint32_t i = 0; i < INTERVALS; i++)
		for (uint64_t l = halo->offset[i]; l < halo->offset[i + 1]; l++) {
			uint32_t vertex[VERTICES];
			if (worker_of(net, i) != from || worker_of(net, halo->list[l].to) != to)
				continue;
			hd_halo_read(&halo->list[l], halo->bytes, graph->interval[i], vertex);
			for (uint32_t v = 0; v < halo->list[l].count; v++) {
				n += !is[vertex[v]];
				is[vertex[v]] = true;
			}
		}
	return n;
}

/* Letters of a pair of workers, at each sync: what has no rows is none. */
static void check_letters(struct net *net, const struct hd_prepared *graph, uint16_t from, uint16_t to)
{
	const struct hd_worker *w = net->at[from].worker;
	const uint64_t read[] = { rows_read(net, graph, from, to, false),
		rows_read(net, graph, from, to, true) };
	struct hd_dist_letter sent[64], received[64];
	size_t n = 0;

	assert_in_range(hd_dist_nsyncs(w), 2, 64);
	const size_t nsent = hd_dist_mail_list(w, to, true, sent),
		nreceived = hd_dist_mail_list(net->at[to].worker, from, false, received);
	for (uint32_t i = 0; i < hd_dist_nsyncs(w); i++) {
		const struct hd_sync *s = sync_of(w, i);
		const struct hd_node *meet = &net->one.task->train.node[s->node];
		const bool back = !strcmp(hd_edge_list_name(&net->one.task->train, meet->in[1]),
			"back_ghosts");
		const uint64_t len = read[back] * s->bytes / net->one.job->per_vn;
		if (len == 0)
			continue;
		CHECK(n < nsent && sent[n].stage == i && sent[n].len == len,
			"meeting %u, worker %u to %u: not the %d rows that are read", i, from, to,
			(int)read[back]);
		CHECK(n < nreceived && received[n].stage == i && received[n].len == len, "meeting %u", i);
		n++;
	}
	assert_true(n == nsent && n == nreceived);
}

/* What `heddle plan` says is what the letters of the fullest sender have. */
static void check_sent(struct net *net)
{
	uint32_t count[8] = { 0 };
	uint64_t most = 0, said = 0;
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < net->plan.nvns; v++)
		count[net->plan.worker[net->plan.map[v]]]++;
	for (uint16_t from = 0; from < net->n; from++) {
		struct hd_dist_letter letter[64];
		uint64_t sent = 0;
		for (uint16_t to = 0; to < net->n; to++) {
			const size_t n = from == to ? 0 :
				hd_dist_mail_list(net->at[from].worker, to, true, letter);
			for (size_t i = 0; i < n; i++)
				sent += letter[i].len;
		}
		most = sent > most ? sent : most;
	}
	CHECK(!hd_lockstep_sent(net->one.task, count, net->n, &said, &diag), "%s", diag.text);
	assert_true(most > 0);
	assert_int_equal(said, most);
}

static void each_worker_gets_the_rows_that_it_reads(void **state)
{
	static const struct { int model; uint32_t n, nranks, each; } kinds[] = { { 0, 8, 3, 1 },
		{ 1, 8, 5, 1 }, { 2, 4, 2, 1 }, { 3, 8, 4, 2 } };
	struct net *net = malloc(sizeof *net);
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int k = 0; k < 4; k++) {
		struct hd_prepared_file file = { 0 };
		struct hd_diag diag = { "" };
		open_net(&g, net, kinds[k].model, kinds[k].n, kinds[k].nranks, kinds[k].each);
		CHECK(!hd_prepared_open(&file, &g.fs, g.path[kinds[k].model % 2], true, &diag), "%s",
			diag.text);
		for (uint16_t from = 0; from < net->n; from++)
			for (uint16_t to = 0; to < net->n; to++)
				if (from != to)
					check_letters(net, &file.graph, from, to);
		check_sent(net);
		hd_prepared_close(&file);
		close_net(net);
	}
	drop_graphs(&g);
	free(net);
}

/* How many letters a meeting has. */
static uint32_t letters_of(const struct net *net, uint32_t k)
{
	struct hd_dist_letter letter[64];
	uint32_t n = 0;

	for (uint16_t from = 0; from < net->n; from++)
		for (uint16_t to = 0; to < net->n; to++) {
			const size_t all = from == to ? 0 :
				hd_dist_mail_list(net->at[from].worker, to, true, letter);
			for (size_t i = 0; i < all; i++)
				n += letter[i].stage == k;
		}
	return n;
}

/* The fence comes among the letters of one meeting after another. That it ends the step is sure while letters
 * of two are left. */
static void workers_may_be_lost_at_each_meeting(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct graphs g;

	(void)state;
	make_graphs(&g);
	seed = 9;
	for (int model = 0; model < NMODELS; model++) {
		open_net(&g, net, model, 4, 3, 1);
		const uint32_t nsyncs = hd_dist_nsyncs(net->at[0].worker);
		for (uint32_t k = 0, before = 1; k < nsyncs; k++) {
			const uint32_t n = letters_of(net, k);
			net->fence_after = before + draw(n);
			before += n;
			step(net, models[model].name);
		}
		assert_true(nsyncs > 2 && net->stale + 2 >= nsyncs);
		close_net(net);
	}
	drop_graphs(&g);
	free(net);
}

/* ---- what is refused ---- */

static void refused(struct graphs *g, const char *model, uint32_t batch, uint32_t n, const char *more_keys,
	const char *says)
{
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	struct hd_arena arena;
	char text[600];

	hd_arena_init(&arena, 0);
	snprintf(text, sizeof text, "model: {use: \"builtin:%s\", args: {input: %u, classes: %u, slots: "
		"%u}%s}\n"
		"data: {kind: graph, path: %s, order: sequential}\n", model, TG_WIDTH, CLASSES, g->slots[0],
		more_keys, g->path[0]);
	struct hd_job *job = hd_rig_job(text, batch, n, NULL, &arena);
	CHECK(hd_task_create(&task, job, &g->fs, &diag) == HD_E_INVAL && strstr(diag.text, says), "%s: %s",
		says, diag.text);
	hd_arena_finish(&arena);
}

static void what_does_not_fit_is_refused_with_the_way_out(void **state)
{
	struct graphs g;
	char says[64];

	(void)state;
	make_graphs(&g);
	const uint32_t rows = (uint32_t)rows_of(&g, 0, 4);
	snprintf(says, sizeof says, "set batch.global to %u, batch.virtual_nodes to 4", 4 * rows);
	refused(&g, "gcn", VERTICES, 4, "", says);
	refused(&g, "gcn", VERTICES, 3, "", "0.graph has 8 intervals: set batch.virtual_nodes to 1 or to a "
		"power");
	refused(&g, "gcn", VERTICES + 10, 16, "", "up to 8");
	refused(&g, "gcn", 4 * rows, 4, ", shards: 2", "model.shards");
	drop_graphs(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_all_virtual_nodes_are_the_graph),
		cmocka_unit_test(devices_have_the_bits_of_one),
		cmocka_unit_test(intervals_compute_what_one_does),
		cmocka_unit_test(both_ends_of_an_edge_drop_it_alike),
		cmocka_unit_test(attention_meets_six_times_a_layer),
		cmocka_unit_test(rows_that_meet_count_once),
		cmocka_unit_test(evaluation_takes_the_graph_whole),
		cmocka_unit_test(the_room_to_evaluate_is_there_once),
		cmocka_unit_test(workers_have_the_bits_of_one_device),
		cmocka_unit_test(rows_of_others_are_in_no_prediction),
		cmocka_unit_test(each_worker_gets_the_rows_that_it_reads),
		cmocka_unit_test(workers_may_be_lost_at_each_meeting),
		cmocka_unit_test(what_does_not_fit_is_refused_with_the_way_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
