#include "engine/rest.h"

#include "base/alloc.h"
#include "pipeline/schedule_check.h"
#include "engine/shadow.h"
#include "engine/testing_stages.h"

/* Ranks are lost within a step, at every instruction of their lists, with all that they had. The others
 * go on by the lists of failover: this step and the next have the bits of one device. Where one held the
 * shadow of the other the state comes back from before, and the steps since have these bits when they are
 * run again. One thread runs all ranks, an instruction at a time, so that each case is the same every
 * time.
 *
 * Before NORM a step goes on by the lists of failover; from NORM on it is sealed, and those that are left
 * finish it from the sums that they hold. */

static const char net[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 60}\n";
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 4, heads: 1, context: 2, vocab: 8, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 60}\n";

enum { VNS = 8, RANKS = 8, STEPS = 4 };

static uint64_t seed = 1;
static uint32_t roll(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* What one device says of each step. */
struct said { struct hd_hash digest; double gnorm, loss; struct hd_leaf leaf[VNS]; };

static void note(const struct hd_rig *rig, const struct hd_step_record *r, struct said *said)
{
	*said = (struct said){ .digest = r->digest, .gnorm = r->gnorm, .loss = r->loss_sum };
	memcpy(said->leaf, rig->worker->step->leaf, sizeof said->leaf);
}

struct bench {
	struct hd_rig rig;
	struct hd_arena bytes_arena;
	struct hd_rig_bytes bytes;                /* after the first step */
	struct said want[STEPS];
	struct hd_plan plan, left;                /* left: without two ranks */
	const struct hd_ilist *list;              /* that are run now */
	uint32_t now;                             /* the step at hand: want[now] */
	uint32_t at[RANKS], n;
	bool lost[RANKS];
};

static struct hd_pipe *pipe_of(const struct bench *b) { return hd_worker_work(b->rig.worker)->pipe; }

static void open_bench(struct bench *b, const char *model, const char *more, const struct hd_rig_kind *k,
	enum hd_redundancy mode)
{
	struct hd_diag diag = { "" };
	struct hd_rig one;

	memset(b, 0, sizeof *b);
	hd_rig_open(&one, model, 2 * VNS, VNS, more, 1);
	for (int i = 0; i < STEPS; i++) {
		struct hd_step_record r = hd_rig_step(&one);
		note(&one, &r, &b->want[i]);
	}
	hd_rig_close(&one);
	hd_arena_init(&b->bytes_arena, 0);
	b->n = k->p * k->d;
	hd_rig_open(&b->rig, model, 2 * VNS, VNS, more, b->n);
	CHECK(hd_rig_staged(b->rig.worker, b->rig.task, k, &b->rig.arena, &b->plan, &diag) == HD_OK, "%s",
		diag.text);
	if (b->n >= 4) {
		const struct hd_rig_kind left = { "1f1b", (b->n - 2) / k->d, 1, k->d, HD_KEEPS_ALL, 1 };
		CHECK(hd_rig_staged(b->rig.worker, b->rig.task, &left, &b->rig.arena, &b->left, &diag) ==
			HD_OK, "%s", diag.text);
	}
	CHECK(hd_rig_shadowed(&b->plan, mode, &b->rig.arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(b->rig.worker, &b->plan, &diag) == HD_OK, "%s", diag.text);
	(void)hd_rig_step(&b->rig);
	hd_rig_copy(&b->rig, &b->bytes, &b->bytes_arena);
	b->now = 1;
}

static void close_bench(struct bench *b)
{
	hd_rig_close(&b->rig);
	hd_arena_finish(&b->bytes_arena);
}

static void go_back(struct bench *b)
{
	hd_rig_paste(&b->rig, &b->bytes, HD_NONE);
	b->now = 1;
}

static void check_bits(const struct bench *b, const struct said *said, uint32_t step, const char *what)
{
	CHECK(memcmp(said, &b->want[step], sizeof *said) == 0, "%s: other bits in step %u", what, step);
}

/* ---- one thread */

static bool can_run(const struct bench *b, uint32_t r)
{
	const struct hd_pipe *pipe = pipe_of(b);
	const struct hd_ins *ins = &b->list[r].at[b->at[r]];
	const enum hd_mail kind = ins->op == HD_INS_RA || ins->op == HD_INS_SA ? HD_MAIL_ACT : HD_MAIL_GRAD;

	switch (ins->op) {
	case HD_INS_NORM: return false;
	case HD_INS_RA: case HD_INS_RG: return hd_cell_for(pipe, ins, ins->stage)->here[kind];
	case HD_INS_SA: case HD_INS_SG:
		if (pipe->before || ins->flags & HD_INS_SHADOW)
			return true;
		return hd_cell_of(pipe, kind == HD_MAIL_ACT ? ins->stage + 1u : ins->stage - 1u,
			ins->vn)->seat->unused[kind][r] < HD_CREDITS;
	default: return true;
	}
}

static bool go(struct bench *b, uint32_t r)
{
	struct hd_rank *rank = &b->rig.worker->rank[r];

	if (b->lost[r] || b->at[r] == b->list[r].len || !can_run(b, r))
		return false;
	hd_interp_one(rank, b->at[r]++);
	CHECK(!rank->err, "rank %u: %s", r, rank->diag.text);
	return true;
}

static void go_all(struct bench *b, uint32_t but)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t r = 0; r < b->n; r++)
			while (r != but && go(b, r))
				moved = true;
	}
}

/* Others go on just as far as the rank needs. */
static void go_to(struct bench *b, uint32_t r, uint32_t at)
{
	while (b->at[r] < at) {
		bool moved = go(b, r);
		for (uint32_t tries = 0; !moved && tries < 10000; tries++)
			moved = go(b, roll(b->n));
		CHECK(moved, "rank %u never comes to %u", r, at);
	}
}

static uint32_t norm_of(const struct hd_ilist *list)
{
	uint32_t i = 0;

	while (list->at[i].op != HD_INS_NORM)
		i++;
	return i;
}

static void begin(struct bench *b)
{
	struct hd_diag diag = { "" };

	memset(b->at, 0, sizeof b->at);
	memset(b->lost, 0, sizeof b->lost);
	b->list = b->plan.list;
	CHECK(hd_step_begin(b->rig.worker, true, &diag) == HD_OK, "%s", diag.text);
	b->rig.worker->step->section = HD_SECTION_ALL;
}

/* Begins that step after undisturbed ones: then shadows are what their updates made of them. */
static void begin_in(struct bench *b, uint32_t step, const char *what)
{
	uint64_t ncopies = 0;
	struct said said;

	for (; b->now < step; b->now++) {
		struct hd_step_record record = hd_rig_step(&b->rig);
		note(&b->rig, &record, &said);
		check_bits(b, &said, b->now, what);
		ncopies = pipe_of(b)->shadow[0].ncopies;
	}
	begin(b);
	CHECK(!ncopies || pipe_of(b)->shadow[0].ncopies == ncopies, "%s: a shadow is copied", what);
}

static void finish(struct bench *b, struct said *said, const char *what)
{
	struct hd_worker *w = b->rig.worker;
	struct hd_step_record record;
	struct hd_diag diag = { "" };

	for (uint32_t r = 0; r < b->n; r++)
		w->rank[r].work->from = b->lost[r] && pipe_of(b)->before ? 0 : b->at[r];
	CHECK(hd_step_end(w, hd_worker_all(w, hd_interp_run, &diag), &record, &diag) == HD_OK, "%s: %s", what,
		diag.text);
	note(&b->rig, &record, said);
}

static void end(struct bench *b, struct said *said, const char *what)
{
	for (uint32_t r = 0; r < b->n; r++)
		CHECK(b->lost[r] || b->at[r] == norm_of(&b->list[r]), "%s: rank %u waits for ever at #%u %s",
			what, r, b->at[r], hd_ins_row(b->list[r].at[b->at[r]].op)->text);
	finish(b, said, what);
}

/* ---- the loss */

static void spoil(void *at, size_t len) { memset(at, 0xff, len); }

/* What lost ranks have sent and no other has taken is lost, or some of it. */
static void lose_mail(struct bench *b, uint32_t how)
{
	struct hd_pipe *pipe = pipe_of(b);

	for (size_t i = 0; i < pipe->ncells; i++)
		for (int kind = 0; kind < HD_MAILS; kind++) {
			struct hd_cell *cell = &pipe->cell[i];
			if (!cell->seat || b->lost[cell->seat->rank] || !cell->here[kind] ||
				!cell->mail[kind] || cell->taken[kind] || !b->lost[cell->from[kind]] ||
				(how && (how == 1 || roll(2))))
				continue;
			struct hd_mail_pool *pool = &cell->seat->mail[kind];
			spoil(cell->mail[kind], pool->bytes);
			pool->free[pool->nfree++] = cell->mail[kind];
			cell->mail[kind] = NULL;
			cell->here[kind] = false;
		}
}

static void spoil_cells(struct bench *b)
{
	struct hd_pipe *pipe = pipe_of(b);

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_seat *seat = &pipe->seat[i];
		if (!b->lost[seat->rank])
			continue;
		for (uint32_t k = 0; k < seat->nmemory; k++)
			spoil(seat->memory[k], seat->memory_bytes[k]);
		for (uint32_t k = 0; k < seat->script.nbuffers; k++)
			for (uint32_t run = 0; run < pipe->stage[seat->stage].nruns; run++)
				spoil(seat->vector[k] + pipe->stage[seat->stage].run[run].at,
					pipe->stage[seat->stage].run[run].len * sizeof(float));
	}
}

static bool copy_lives(const struct bench *b, uint32_t r)
{
	const uint32_t nstages = pipe_of(b)->nstages;
	bool copy = false;

	for (uint32_t k = 0; k < b->n; k++)
		copy |= k % nstages == r % nstages && !b->lost[k];
	return copy;
}

static uint32_t heir_of(const struct bench *b, uint32_t r)
{
	return r % pipe_of(b)->nstages ? r - 1 : r + pipe_of(b)->nstages - 1;
}

/* State of the lost rank's stage and its shadow's; of copies that live nothing. */
static void spoil_state(struct bench *b, uint32_t r)
{
	struct hd_worker *w = b->rig.worker;
	const struct hd_layout *layout = &b->rig.task->layout;
	const struct hd_shadow *own = hd_shadow_of(pipe_of(b), r),
		*of = hd_shadow_of(pipe_of(b), heir_of(b, r));
	const bool copy = copy_lives(b, r);

	for (uint32_t v = HD_VEC_PARAMS; v <= hd_param_store_nslots(w->store); v++) {
		for (uint32_t k = 0; k < of->nparams && !copy; k++)
			spoil(hd_param_store_at(w->store, (enum hd_vector)v, layout->at[of->param[k]], 0),
				layout->len[of->param[k]] * sizeof(float));
		spoil(hd_param_store_at(own->store, (enum hd_vector)v, 0, 0),
			hd_param_store_elems(own->store, (enum hd_vector)v) * sizeof(float));
	}
}

/* And what the stage said. */
static void spoil_rest(struct bench *b, uint32_t r)
{
	struct hd_pipe *pipe = pipe_of(b);
	struct hd_worker *w = b->rig.worker;

	spoil_state(b, r);
	for (uint32_t v = 0; v < VNS; v++)
		for (uint32_t s = 0; s < pipe->nstages; s++) {
			if (hd_cell_of(pipe, s, v)->rank != r)
				continue;
			if (pipe->stage[s].out.loss != HD_NONE)
				/* terms: the job has none, so no stage says them again */
				spoil(&w->step->leaf[v], offsetof(struct hd_leaf, term));
			for (uint32_t k = 0; k < pipe->stage[s].cut->graph.nrunning; k++) {
				const uint32_t record = pipe->stage[s].cut->running[k];
				const struct hd_moments *m = &w->step->moments;
				spoil(m->leaf + v * m->elems + m->at[record],
					(m->at[record + 1] - m->at[record]) * sizeof *m->leaf);
			}
		}
}

/* Shadows that go on are their owners still. */
static void check_shadows(const struct bench *b, const char *what)
{
	const struct hd_layout *layout = &b->rig.task->layout;
	const struct hd_param_store *own = b->rig.worker->store;
	uint32_t nlost = 0, nended = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct hd_shadow *s = &pipe_of(b)->shadow[i];
		nlost += b->lost[i];
		nended += s->ended;
		for (uint32_t k = 0; k < s->nparams && !s->ended; k++)
			for (uint32_t v = HD_VEC_PARAMS; v <= hd_param_store_nslots(own); v++) {
				const uint64_t at = layout->at[s->param[k]], len = layout->len[s->param[k]];
				CHECK(memcmp(hd_param_store_at(own, (enum hd_vector)v, at, len),
					hd_param_store_at(s->store, (enum hd_vector)v, at, len),
					len * sizeof(float)) == 0, "%s: owner and shadow of stage %u differ",
					what, s->stage);
			}
	}
	CHECK(nended == 2 * nlost, "%s: %u shadows have ended", what, nended);
}

static void next_by_another_plan(struct bench *b, const char *what)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct said said;

	CHECK(hd_worker_adopt(b->rig.worker, &b->plan, &diag) == HD_OK, "%s: %s", what, diag.text);
	record = hd_rig_step(&b->rig);
	note(&b->rig, &record, &said);
	check_bits(b, &said, b->now + 1, what);
	go_back(b);
}

/* Lost ranks are gone; the step ends without them, and the next one is another plan's. */
static void lose_and_end(struct bench *b, uint32_t how, const char *what)
{
	struct hd_diag diag = { "" };
	struct said said;

	lose_mail(b, how);
	spoil_cells(b);
	for (uint32_t r = 0; r < b->n; r++)
		if (b->lost[r])
			spoil_rest(b, r);
	CHECK(hd_rest_adopt(b->rig.worker, b->at, b->lost, &b->list, &diag) == HD_OK, "%s: %s", what,
		diag.text);
	memset(b->at, 0, sizeof b->at);
	go_all(b, RANKS);
	end(b, &said, what);
	check_bits(b, &said, b->now, what);
	check_shadows(b, what);
	/* the lists are those of ranks that are gone */
	struct hd_step_record record;
	assert_int_equal(hd_worker_step(b->rig.worker, false, &record, &diag), HD_E_INVAL);
	next_by_another_plan(b, what);
}

static const char *word(const struct hd_ilist *list, uint32_t i) { return hd_ins_row(list->at[i].op)->text; }

/* Every n-th case, beginning with a drawn one. */
static uint32_t slice(uint32_t every) { return getenv("HD_DRAWS") ? 1 : every; }

static uint32_t all_instructions(const char *model, const char *more, const struct hd_rig_kind *kind,
	enum hd_redundancy mode, uint32_t every)
{
	static struct bench b;
	uint32_t n = 0, next = roll(every);
	char what[200];

	open_bench(&b, model, more, kind, mode);
	for (uint32_t victim = 0; victim < b.n; victim++)
		for (uint32_t at = 0; at <= norm_of(&b.plan.list[victim]); at++)
			for (uint32_t k = 0; k < 6; k++, next--) {
				const uint32_t how = k / 2, step = 1 + k % 2;
				if (next)
					continue;
				next = every;
				snprintf(what, sizeof what,
					"%.20s %s p %u d %u %s: rank %u at #%u %s, %u, step %u",
					model + 8, kind->name, kind->p, kind->d,
					hd_redundancy_names[mode], victim, at,
					word(&b.plan.list[victim], at), how, step);
				begin_in(&b, step, what);
				go_to(&b, victim, at);
				for (uint32_t i = how == 1 ? 400 : 0; i; i--) {
					const uint32_t r = roll(b.n);
					if (r != victim)
						go(&b, r);
				}
				if (how == 2)
					go_all(&b, victim);
				b.lost[victim] = true;
				lose_and_end(&b, how, what);
				n++;
			}
	close_bench(&b);
	return n;
}

static void any_rank_may_be_lost_at_any_instruction(void **state)
{
	static const struct hd_rig_kind kinds[] = {
		{ "gpipe", 4, 1, 1, HD_KEEPS_ALL, 1 }, { "1f1b", 4, 1, 1, HD_KEEPS_ALL, 1 },
		{ "gpipe", 4, 1, 2, HD_KEEPS_ALL, 1 }, { "1f1b", 4, 1, 2, HD_KEEPS_ALL, 1 },
		{ "zb-h1", 3, 1, 1, HD_KEEPS_ALL, 1 }, { "1f1b", 2, 1, 1, HD_KEEPS_ALL, 1 },
	};
	uint32_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
			n += all_instructions(net, "optim: {kind: adamw, clip: 0.5}\n", &kinds[i],
				(enum hd_redundancy)mode, slice(83));
	print_message("%u losses\n", n);
}

static void losses_in_other_jobs_and_lists(void **state)
{
	static const struct hd_rig_kind input = { "1f1b", 3, 1, 1, HD_KEEPS_INPUT, 1 },
		away = { "gpipe", 3, 1, 1, HD_KEEPS_AWAY, 1 }, h1 = { "zb-h1", 4, 1, 2, HD_KEEPS_ALL, 1 },
		two = { "gpipe", 2, 1, 2, HD_KEEPS_INPUT, 1 };
	const struct { const char *model, *more; const struct hd_rig_kind *k; } rows[] = {
		{ net, NULL, &input }, { net, "optim: {kind: momentum, lr: 0.05}\n", &away },
		{ tied, "optim: {kind: adamw, clip: 0.5}\n", &h1 }, { net, "optim: {kind: lamb}\n", &two },
		{ tied, "optim: {kind: lamb}\n", &input }, { hd_rig_bn(), "optim: {kind: adam}\n", &away },
	};
	uint32_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
			n += all_instructions(rows[i].model, rows[i].more, rows[i].k,
				(enum hd_redundancy)mode, slice(83));
	print_message("%u losses\n", n);
}

/* ---- from NORM to the end of the list */

static void run_norm(struct hd_rank *rank) { hd_interp_one(rank, rank->work->from); }

static void pass_norm(struct bench *b)
{
	struct hd_worker *w = b->rig.worker;
	struct hd_diag diag = { "" };

	go_all(b, RANKS);
	for (uint32_t r = 0; r < b->n; r++)
		w->rank[r].work->from = b->at[r]++;
	CHECK(hd_worker_all(w, run_norm, &diag) == HD_OK, "%s", diag.text);
}

/* No instruction behind NORM waits for another rank. */
static void run_up_to(struct bench *b, uint32_t r, uint32_t at)
{
	while (b->at[r] < at)
		CHECK(go(b, r), "rank %u waits at %u", r, b->at[r]);
}

/* Its shadow's state and sums, and if no copy lives what it had of its stage. */
static void spoil_sealed(struct bench *b, uint32_t r)
{
	const struct hd_layout *layout = &b->rig.task->layout;
	const struct hd_shadow *own = hd_shadow_of(pipe_of(b), r),
		*of = hd_shadow_of(pipe_of(b), heir_of(b, r));

	spoil_state(b, r);
	spoil(own->sum, layout->elems * sizeof(float));
	for (uint32_t k = 0; k < of->nparams && !copy_lives(b, r); k++)
		spoil(hd_worker_sum(b->rig.worker) + layout->at[of->param[k]],
			layout->len[of->param[k]] * sizeof(float));
}

/* In one process a rank updates chunks of any stage; over workers each that holds a bucket does. What the
 * lost one had not updated others do. */
static void update_chunks_of(struct bench *b, uint32_t r, uint32_t heir)
{
	struct hd_worker *w = b->rig.worker;
	struct hd_worker_part *part = w->parts->part;
	struct hd_diag diag = { "" };
	uint32_t owner[64];

	assert_true(w->task->layout.nchunks <= 64);
	memcpy(owner, part->owner, w->task->layout.nchunks * sizeof *owner);
	for (uint32_t c = 0; c < w->task->layout.nchunks; c++)
		part->owner[c] = owner[c] == r ? heir : HD_NONE;
	CHECK(pipe_of(b)->updated[r] || hd_update_chunks(&w->rank[heir], &diag) == HD_OK, "%s", diag.text);
	memcpy(part->owner, owner, w->task->layout.nchunks * sizeof *owner);
}

/* The step is sealed: those that are left run the rest of their lists, and the heir's shadow is the stage. */
static void lose_sealed(struct bench *b, uint32_t r, const char *what)
{
	struct hd_shadow *of = hd_shadow_of(pipe_of(b), heir_of(b, r));
	struct said said;

	b->lost[r] = true;
	spoil_sealed(b, r);
	for (uint32_t k = 0; k < b->n; k++)
		if (k != r)
			run_up_to(b, k, b->list[k].len);
	update_chunks_of(b, r, heir_of(b, r));
	hd_shadow_becomes(b->rig.worker, of);
	of->ended = hd_shadow_of(pipe_of(b), r)->ended = true;
	b->at[r] = b->list[r].len;
	finish(b, &said, what);
	check_bits(b, &said, b->now, what);
	check_shadows(b, what);
	next_by_another_plan(b, what);
}

/* `how`: no other has run anything behind NORM, all have run it all, or each some of it. */
static void lose_behind_norm(struct bench *b, uint32_t victim, uint32_t at, uint32_t how, const char *what)
{
	begin_in(b, 1 + roll(2), what);
	pass_norm(b);
	for (uint32_t r = 0; r < b->n; r++) {
		const uint32_t left = b->list[r].len - b->at[r];
		const uint32_t more = how == 0 ? 0 : how == 1 ? left : roll(left + 1);
		run_up_to(b, r, r == victim ? at : b->at[r] + more);
	}
	lose_sealed(b, victim, what);
}

/* From the instruction behind NORM to where all are behind its list. */
static uint32_t all_behind_norm(struct bench *b, uint32_t *next, const char *lists)
{
	uint32_t n = 0;
	char what[160];

	for (uint32_t victim = 0; victim < b->n; victim++) {
		const struct hd_ilist *list = &b->plan.list[victim];
		for (uint32_t at = norm_of(list) + 1; at <= list->len; at++)
			for (uint32_t how = 0; how < 6; how++) {
				if ((*next)--)
					continue;
				*next = slice(41) - 1;
				snprintf(what, sizeof what, "%s: rank %u at #%u %s, %u", lists, victim, at,
					at < list->len ? word(list, at) : "(end)", how);
				lose_behind_norm(b, victim, at, how, what);
				n++;
			}
	}
	return n;
}

static void any_rank_may_be_lost_behind_norm(void **state)
{
	static const char *const optim[] = { "optim: {kind: adamw, clip: 0.5}\n",
		"optim: {kind: momentum, lr: 0.05}\n" };
	static struct bench b;
	uint32_t n = 0, next = roll(slice(41));
	char lists[100];

	(void)state;
	for (uint32_t c = 0; c < 12; c++) {
		const struct hd_rig_kind k = { c % 2 ? "1f1b" : "gpipe", 4, 1, 1 + c / 2 % 2, HD_KEEPS_ALL,
			1 };
		const enum hd_redundancy mode = (enum hd_redundancy)(1 + c / 4);
		open_bench(&b, net, optim[c / 6], &k, mode);
		snprintf(lists, sizeof lists, "%s d %u %s", k.name, k.d, hd_redundancy_names[mode]);
		n += all_behind_norm(&b, &next, lists);
		close_bench(&b);
	}
	print_message("%u losses behind NORM\n", n);
	assert_true(n > 20);
}

/* ---- losses of two */

static void check_refused(struct bench *b, const char *what)
{
	struct hd_diag diag = { "" };

	CHECK(hd_rest_adopt(b->rig.worker, b->at, b->lost, &b->list, &diag) == HD_E_REFUSED &&
		strstr(diag.text, "are lost: the one held"), "%s: %s", what, diag.text);
}

/* Nothing of the state is left; that after the first step comes back, as from a checkpoint. The ranks that
 * are left run the step that was committed since, and the one at hand, by a plan of their own. */
static void roll_back(struct bench *b, const char *what)
{
	struct hd_param_store *store = b->rig.worker->store;
	struct hd_diag diag = { "" };
	struct said said;

	spoil_cells(b);
	for (uint32_t v = HD_VEC_PARAMS; v <= hd_param_store_nslots(store); v++)
		spoil(hd_param_store_at(store, (enum hd_vector)v, 0, 0),
			hd_param_store_elems(store, (enum hd_vector)v) * sizeof(float));
	hd_dist_abandon(b->rig.worker);
	CHECK(hd_worker_adopt(b->rig.worker, &b->left, &diag) == HD_OK, "%s: %s", what, diag.text);
	hd_rig_paste(&b->rig, &b->bytes, HD_NONE);
	for (uint32_t i = 1; i < 3; i++) {
		struct hd_step_record record = hd_rig_step(&b->rig);
		note(&b->rig, &record, &said);
		check_bits(b, &said, i, what);
	}
	CHECK(hd_worker_adopt(b->rig.worker, &b->plan, &diag) == HD_OK, "%s: %s", what, diag.text);
	hd_rig_paste(&b->rig, &b->bytes, HD_NONE);
}

/* Nothing has changed where it is refused: it goes on if both are there after all. In the next step they are
 * lost where they stood in this one, or come to. */
static void refuse_and_roll_back(struct bench *b, uint32_t first, uint32_t second, const char *what)
{
	const uint32_t to = b->at[first];
	struct said said;

	check_refused(b, what);
	memset(b->lost, 0, sizeof b->lost);
	go_all(b, RANKS);
	end(b, &said, what);
	check_bits(b, &said, 1, what);
	begin(b);
	go_to(b, first, to);
	b->lost[first] = b->lost[second] = true;
	check_refused(b, what);
	roll_back(b, what);
}

/* Two are lost where they stand. true: it was refused. */
static bool lose_both(struct bench *b, uint32_t first, uint32_t second, uint32_t how, const char *lists)
{
	const bool apart = first / 4 != second / 4 || second - first == 2;
	char what[200];

	snprintf(what, sizeof what, "%s: rank %u at #%u %s, rank %u at #%u %s", lists, first, b->at[first],
		word(&b->plan.list[first], b->at[first]), second, b->at[second],
		word(&b->plan.list[second], b->at[second]));
	b->lost[first] = b->lost[second] = true;
	if (apart)
		lose_and_end(b, how, what);
	else
		refuse_and_roll_back(b, first, second, what);
	return !apart;
}

/* The first stands anywhere, others where they came to. */
static bool lose_two(struct bench *b, uint32_t first, uint32_t second, uint32_t how, const char *lists)
{
	begin(b);
	go_to(b, first, roll(norm_of(&b->plan.list[first]) + 1));
	for (uint32_t more = roll(300); more; more--)
		go(b, roll(b->n));
	return lose_both(b, first, second, how, lists);
}

/* Both come to one index and no further. False: one of them cannot without the other going on. */
static bool both_at(struct bench *b, uint32_t first, uint32_t second, uint32_t at)
{
	begin(b);
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t r = 0; r < b->n; r++)
			moved |= ((r != first && r != second) || b->at[r] < at) && go(b, r);
	}
	return b->at[first] == at && b->at[second] == at;
}

static void two_ranks_may_be_lost_at_one_index(void **state)
{
	static struct bench b;
	uint32_t n = 0, refused = 0, apart = 0;
	char lists[100];

	(void)state;
	for (uint32_t c = 0; c < 12; c++) {
		const struct hd_rig_kind k = { c % 2 ? "1f1b" : "gpipe", 4, 1, 1 + c / 2 % 2, HD_KEEPS_ALL,
			1 };
		const enum hd_redundancy mode = (enum hd_redundancy)(1 + c / 4);
		uint32_t next = roll(slice(41));
		open_bench(&b, net, "optim: {kind: adamw, clip: 0.5}\n", &k, mode);
		snprintf(lists, sizeof lists, "%s d %u %s", k.name, k.d, hd_redundancy_names[mode]);
		for (uint32_t first = 0; first < b.n; first++)
			for (uint32_t second = first + 1; second < b.n; second++)
				for (uint32_t at = 0; at <= norm_of(&b.plan.list[first]) &&
					at <= norm_of(&b.plan.list[second]); at++) {
					if (next--)
						continue;
					next = slice(41) - 1;
					if (both_at(&b, first, second, at)) {
						refused += lose_both(&b, first, second, at % 3, lists);
						n++;
					} else {
						hd_dist_abandon(b.rig.worker);
						hd_rig_paste(&b.rig, &b.bytes, HD_NONE);
						apart++;
					}
				}
		close_bench(&b);
	}
	print_message("%u losses of two at one index, %u refused; %u where one waits for the other\n", n,
		refused, apart);
	assert_true(n > 20 && refused > 5);
}

static void any_two_ranks_may_be_lost_unless_they_are_neighbours(void **state)
{
	const uint32_t each = getenv("HD_DRAWS") ? 150 : 3;
	static struct bench b;
	uint32_t n = 0, refused = 0;
	char lists[100];

	(void)state;
	for (uint32_t c = 0; c < 12; c++) {
		const struct hd_rig_kind k = { c % 2 ? "1f1b" : "gpipe", 4, 1, 1 + c / 2 % 2, HD_KEEPS_ALL,
			1 };
		const enum hd_redundancy mode = (enum hd_redundancy)(1 + c / 4);
		open_bench(&b, net, "optim: {kind: adamw, clip: 0.5}\n", &k, mode);
		snprintf(lists, sizeof lists, "%s d %u %s", k.name, k.d, hd_redundancy_names[mode]);
		for (uint32_t first = 0; first < b.n; first++)
			for (uint32_t second = first + 1; second < b.n; second++)
				for (uint32_t i = 0; i < each; i++, n++)
					refused += lose_two(&b, first, second, i % 3, lists);
		close_bench(&b);
	}
	print_message("%u losses of two, %u refused\n", n, refused);
}

/* Whatever request for memory fails: the step is given up, the state is that of its beginning, and the plan
 * can be run again. */
static void a_rest_that_finds_no_memory_gives_the_step_up(void **state)
{
	const struct hd_rig_kind k = { "1f1b", 3, 1, 1, HD_KEEPS_ALL, 1 };
	static struct bench b;
	uint32_t failed = 0;
	bool made = false;

	(void)state;
	open_bench(&b, net, "optim: {kind: adamw, clip: 0.5}\n", &k, HD_REDUNDANCY_EAGER);
	for (uint64_t n = 1; n < 4000 && !made; n += 1 + n / 8) {
		struct hd_diag diag = { "" };
		begin(&b);
		go_to(&b, 1, 20);
		b.lost[1] = true;
		hd_alloc_arm(n);
		enum hd_err err = hd_rest_adopt(b.rig.worker, b.at, b.lost, &b.list, &diag);
		hd_alloc_arm(0);
		made = !err;
		failed += err != HD_OK;
		CHECK(!err || err == HD_E_NOMEM, "request %llu: %s", (unsigned long long)n, diag.text);
		hd_dist_abandon(b.rig.worker);
		CHECK(hd_worker_adopt(b.rig.worker, &b.plan, &diag) == HD_OK, "%s", diag.text);
		hd_rig_paste(&b.rig, &b.bytes, HD_NONE);
		struct hd_step_record r = hd_rig_step(&b.rig);
		CHECK(hd_hash_same(r.digest, b.want[1].digest), "request %llu: other bits",
			(unsigned long long)n);
		hd_rig_paste(&b.rig, &b.bytes, HD_NONE);
	}
	assert_true(made && failed > 3);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_rank_may_be_lost_at_any_instruction),
		cmocka_unit_test(losses_in_other_jobs_and_lists),
		cmocka_unit_test(any_rank_may_be_lost_behind_norm),
		cmocka_unit_test(any_two_ranks_may_be_lost_unless_they_are_neighbours),
		cmocka_unit_test(two_ranks_may_be_lost_at_one_index),
		cmocka_unit_test(a_rest_that_finds_no_memory_gives_the_step_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
