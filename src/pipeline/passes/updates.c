/* Versions and updates: both hang on the last gradient of a block, the virtual nodes of one update, on a
 * rank.
 *
 * Of one section the last one is where it stands. A period is a template: which virtual node of a block is
 * the rank's last follows from its number inside the step, and which of two stages ends its block later from
 * how many steps, then how many instructions, each of them lags behind. */
#include "pipeline/passes/int.h"

#define NEVER UINT32_MAX

/* When a stage ends a block, as seen from the block: steps later, then place in the list. */
struct moment { int32_t steps; uint32_t at; };

struct pass {
	const struct hd_schedule *s;
	const struct hd_schedule_job *job;
	struct hd_stage_rule *rule;
	/* [stages * vns] flush: place of the last gradient of a block (by its number) + 1; period: 1 + the
	 * rank whose last of its block this virtual node is */
	uint32_t *last;
	uint32_t *nholders;                       /* [stages] */
	/* stages of the rank at hand, in the order of their first forward */
	uint32_t *held, nheld;
	uint32_t *held_by;                        /* [stages] rank + 1 */
	uint32_t rank;
	/* of updates, for the rank at hand */
	/* [stages * vns] of block b of stage s at s * vns + b: b inside a step */
	struct moment *end;
	struct hd_ilist *to;
	struct hd_ins *wait; uint32_t nwait;      /* last gradients met */
	bool pins;                                /* a version that is made is pinned */
	uint32_t *order;                          /* [stages] scratch */
};

static bool is_gradient(uint8_t op) { return op == HD_INS_B || op == HD_INS_W; }
static bool is_send(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG; }
static size_t cell(const struct pass *p, uint32_t stage, uint32_t k) { return (size_t)stage * p->s->nvns + k;
	}
static int32_t block_of(const struct pass *p, const struct hd_ins *x) { return hd_block_of((int32_t)x->vn,
	p->rule[x->stage].every); }
static uint32_t nblocks(const struct pass *p, uint32_t stage) { return p->s->nvns / p->rule[stage].every; }
static uint32_t inside(const struct pass *p, uint32_t stage, int32_t block)
{
	int32_t n = (int32_t)nblocks(p, stage);

	return (uint32_t)((block % n + n) % n);
}

/* ---- what both need */

static bool take(struct pass *p, struct hd_arena *arena)
{
	size_t n = (size_t)p->s->nstages, m = p->s->nvns;

	p->rule = hd_arena_take(arena, n + 1, sizeof *p->rule);
	p->last = hd_arena_take(arena, n * m + 1, sizeof *p->last);
	p->nholders = hd_arena_take(arena, n + 1, sizeof *p->nholders);
	p->held = hd_arena_take(arena, n + 1, sizeof *p->held);
	p->held_by = hd_arena_take(arena, n + 1, sizeof *p->held_by);
	p->end = hd_arena_take(arena, n * m + 1, sizeof *p->end);
	p->wait = hd_arena_take(arena, n + 2, sizeof *p->wait);
	p->order = hd_arena_take(arena, n + 1, sizeof *p->order);
	return p->rule && p->last && p->nholders && p->held && p->held_by && p->end && p->wait && p->order;
}

static void find_held(struct pass *p)
{
	const struct hd_ilist *list = &p->s->list[p->rank];

	p->nheld = 0;
	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == HD_INS_F && p->held_by[list->at[i].stage] != p->rank + 1) {
			p->held_by[list->at[i].stage] = p->rank + 1;
			p->held[p->nheld++] = list->at[i].stage;
		}
}

/* The rank's last virtual node of each block: the period has each of the rank's once. */
static void find_last(struct pass *p)
{
	const struct hd_ilist *list = &p->s->list[p->rank];

	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *x = &list->at[i];
		if (!is_gradient(x->op))
			continue;
		if (!p->s->prologue) {
			p->last[cell(p, x->stage, (uint32_t)block_of(p, x))] = i + 1;
			continue;
		}
		/* `end` is scratch here: the highest number so far of the block */
		struct moment *high = &p->end[cell(p, x->stage, inside(p, x->stage, block_of(p, x)))];
		uint32_t v = hd_inside(p->s, x->vn);
		if (high->steps != (int32_t)p->rank + 1 || v > high->at)
			*high = (struct moment){ (int32_t)p->rank + 1, v };
	}
	for (uint32_t h = 0; p->s->prologue && h < p->nheld; h++)
		for (uint32_t b = 0; b < nblocks(p, p->held[h]); b++) {
			const struct moment *high = &p->end[cell(p, p->held[h], b)];
			if (high->steps == (int32_t)p->rank + 1)
				p->last[cell(p, p->held[h], high->at)] = p->rank + 1;
		}
}

static bool ends_block(const struct pass *p, const struct hd_ins *x, uint32_t at)
{
	if (!is_gradient(x->op))
		return false;
	if (!p->s->prologue)
		return p->last[cell(p, x->stage, (uint32_t)block_of(p, x))] == at + 1;
	return p->last[cell(p, x->stage, hd_inside(p->s, x->vn))] == p->rank + 1;
}

static enum hd_err begin(struct pass *p, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = hd_pass_numbers(p->s, diag);
	uint64_t nins = 0;

	for (uint32_t r = 0; r < p->s->nranks; r++)
		nins += p->s->list[r].len;
	if (!err && (uint64_t)p->s->nstages * p->s->nvns > nins)
		err = hd_fail(diag, HD_E_BADPLAN,
			"%u stages of %u virtual nodes need more than its %llu instructions", p->s->nstages,
			p->s->nvns,
			(unsigned long long)nins);
	if (!err && !take(p, arena))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
	err = err ? err : hd_stage_rules(p->rule, p->s, p->job, diag);
	for (uint32_t s = 0; !err && s < p->s->nstages; s++)
		if (p->rule[s].delay && (!p->s->prologue || p->job->eager))
			err = hd_fail(diag, HD_E_INVAL, p->s->prologue ?
				"stage %u is updated late: eager updates (STEP!) are for updates at once" :
				"stage %u is updated late: that needs the sections prologue, period and "
				"epilogue", s);
	for (p->rank = 0; !err && p->rank < p->s->nranks; p->rank++) {
		find_held(p);
		for (uint32_t h = 0; h < p->nheld; h++)
			p->nholders[p->held[h]]++;
	}
	for (uint32_t s = 0; s < p->s->nstages && !err; s++)
		p->held_by[s] = 0;
	return err;
}

/* ---- versions */

static void put_version(struct pass *p, uint8_t op, uint32_t stage, int32_t version)
{
	hd_pass_put(p->to, (struct hd_ins){ .op = op, .stage = (uint16_t)stage, .ver = hd_ver_of(version) });
}

static void release_block(struct pass *p, const struct hd_ins *x)
{
	int32_t b = block_of(p, x), delay = (int32_t)p->rule[x->stage].delay;

	if (!p->job->eager)
		put_version(p, HD_INS_REL, x->stage, b - delay);
	if (p->s->prologue || b + 1 < (int32_t)nblocks(p, x->stage))
		put_version(p, HD_INS_PIN, x->stage, b + 1);
}

static void versions_of_list(struct pass *p, const struct hd_ilist *from)
{
	for (uint32_t i = 0; i < from->len; i++) {
		struct hd_ins x = from->at[i];
		bool more = i + 1 < from->len && (is_send(from->at[i + 1].op) || x.flags & HD_INS_PAIR_BEGIN);
		if (ends_block(p, &x, i))
			p->wait[p->nwait++] = x;
		if (p->s->prologue && hd_ins_flags_of(x.op) & HD_INS_VERSIONED &&
			!(x.flags & HD_INS_VERSIONED)) {
			x.flags |= HD_INS_VERSIONED;
			x.ver = hd_ver_of(block_of(p, &x) - (int32_t)p->rule[x.stage].delay);
		}
		hd_pass_put(p->to, x);
		for (uint32_t k = 0; !more && k < p->nwait; k++)
			release_block(p, &p->wait[k]);
		p->nwait = more ? p->nwait : 0;
	}
}

static void put_held(struct pass *p, uint8_t op)
{
	for (uint32_t h = 0; h < p->nheld; h++)
		for (int32_t v = -(int32_t)p->rule[p->held[h]].delay; v <= 0; v++)
			put_version(p, op, p->held[h], v);
}

/* Eager updates of several blocks would go back to the one before. */
static enum hd_err refuse_eager(const struct pass *p, struct hd_diag *diag)
{
	for (uint32_t s = 0; p->job->eager && s < p->s->nstages; s++)
		if (nblocks(p, s) > 1)
			return hd_fail(diag, HD_E_INVAL,
				"stage %u is updated %u times in a step: eager updates (STEP!) are for one",
				s, nblocks(p, s));
	return HD_OK;
}

static uint32_t most_delay(const struct pass *p)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < p->s->nstages; s++)
		most = p->rule[s].delay > most ? p->rule[s].delay : most;
	return most;
}

enum hd_err hd_schedule_versions(struct hd_schedule *out, const struct hd_schedule *s,
	const struct hd_schedule_job *job,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_schedule_job nothing = { 0 };
	static const uint8_t done[] = { HD_INS_PIN, HD_INS_REL, 0 };
	struct pass p = { .s = s, .job = job ? job : &nothing };
	struct hd_schedule o;

	if (hd_schedule_has(s, done)) {
		*out = *s;
		return HD_OK;
	}
	enum hd_err err = begin(&p, arena, diag);
	err = err ? err : refuse_eager(&p, diag);
	err = err ? err : hd_pass_begin(&o, s, 3, (most_delay(&p) + 1) * s->nstages, arena, diag);
	for (p.rank = 0; !err && p.rank < s->nranks; p.rank++) {
		find_held(&p);
		find_last(&p);
		for (int i = 0; i < HD_SECTIONS; i++) {
			if (!hd_section(s, i))
				continue;
			p.to = &hd_section(&o, i)[p.rank];
			if (i == 0 || !s->prologue)
				put_held(&p, HD_INS_PIN);
			versions_of_list(&p, &hd_section(s, i)[p.rank]);
			if (i == 2 || (!s->prologue && p.job->eager))
				put_held(&p, HD_INS_REL);
		}
	}
	if (!err)
		*out = o;
	return err;
}

/* ---- updates */

static bool later(struct moment a, struct moment b) { return a.steps != b.steps ? a.steps > b.steps :
	a.at > b.at; }

static void find_ends(struct pass *p)
{
	const struct hd_ilist *list = &p->s->list[p->rank];

	for (uint32_t h = 0; h < p->nheld; h++)
		for (uint32_t b = 0; b < nblocks(p, p->held[h]); b++)
			p->end[cell(p, p->held[h], b)] = (struct moment){ INT32_MIN, 0 };
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *x = &list->at[i];
		if (!ends_block(p, x, i))
			continue;
		int32_t b = block_of(p, x);
		p->end[cell(p, x->stage, inside(p, x->stage, b))] = (struct moment){ -hd_block_of(b,
			nblocks(p, x->stage)), i };
	}
}

/* All stages of the rank end their blocks with this one. */
static bool closes(const struct pass *p, uint32_t stage, int32_t block)
{
	struct moment mine = p->end[cell(p, stage, inside(p, stage, block))];

	for (uint32_t h = 0; h < p->nheld; h++) {
		uint32_t s = p->held[h];
		if (s != stage && later(p->end[cell(p, s, inside(p, s, block))], mine))
			return false;
	}
	return true;
}

static bool is_tied(const struct pass *p, uint32_t stage)
{
	bool tied = false;

	for (uint32_t g = 0; g < p->job->ntied; g++)
		tied |= p->job->tied[g].holds[stage];
	return tied;
}

/* The update of a stage waits for all others of the rank: where the lists end, where one norm clips them, and
 * behind a TIE, which must not keep a rank from what it still computes for those that it meets. */
static bool waits_for_all(const struct pass *p, uint32_t stage)
{
	return (!p->s->prologue && !p->job->eager && nblocks(p, 0) == 1) ||
		(p->job->clips && !p->job->eager) || is_tied(p, stage);
}

/* Stages that wait for all, in the order in which they end the block. */
static uint32_t find_waiting(struct pass *p, int32_t block)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < p->nheld; h++) {
		uint32_t s = p->held[h], k;
		if (!waits_for_all(p, s))
			continue;
		for (k = n++; k > 0; k--) {
			uint32_t before = p->order[k - 1];
			if (!later(p->end[cell(p, before, inside(p, before, block))],
				p->end[cell(p, s, inside(p, s, block))]))
				break;
			p->order[k] = before;
		}
		p->order[k] = s;
	}
	return n;
}

static void put_step(struct pass *p, uint32_t stage, int32_t version)
{
	hd_pass_put(p->to, (struct hd_ins){ .op = HD_INS_STEP, .flags = p->job->eager ? HD_INS_EAGER : 0,
		.stage = (uint16_t)stage,
		.ver = hd_ver_of(version) });
	if (p->pins && (p->s->prologue || version < (int32_t)nblocks(p, stage)))
		put_version(p, HD_INS_PIN, stage, version);
}

static void end_all(struct pass *p, int32_t block)
{
	for (uint32_t g = 0; g < p->job->ntied; g++)
		for (uint32_t h = 0; h < p->nheld; h++)
			if (p->job->tied[g].holds[p->held[h]]) {
				hd_pass_put(p->to, (struct hd_ins){ .op = HD_INS_TIE, .stage = (uint16_t)g });
				break;
			}
	if (p->job->clips && !p->job->eager)
		hd_pass_put(p->to, (struct hd_ins){ .op = HD_INS_NORM });
	uint32_t n = find_waiting(p, block);
	for (uint32_t k = 0; k < n; k++)
		put_step(p, p->order[k], block + 1);
	if (p->job->eager)
		hd_pass_put(p->to, (struct hd_ins){ .op = HD_INS_VAL, .ver = hd_ver_of(block + 1) });
}

static void end_block(struct pass *p, const struct hd_ins *x)
{
	int32_t block = block_of(p, x);
	bool reduced = p->nholders[x->stage] > 1 || p->job->npipelines > 1;

	for (uint32_t k = 0; reduced && k < hd_buckets_of(p->job, x->stage); k++)
		hd_pass_put(p->to, (struct hd_ins){ .op = HD_INS_RED, .stage = x->stage,
			.slot = (uint16_t)k });
	if (!waits_for_all(p, x->stage))
		put_step(p, x->stage, block + 1);
	if (closes(p, x->stage, block))
		end_all(p, block);
}

/* What follows a last gradient and stays before its reduction: sends, and the release of what it used; a pin
 * of what is made goes behind its STEP. */
static bool stays_before(const struct pass *p, const struct hd_ins *x)
{
	if (is_send(x->op) || x->flags & HD_INS_PAIR_END)
		return true;
	for (uint32_t k = 0; k < p->nwait && !p->job->eager; k++) {
		int32_t block = block_of(p, &p->wait[k]), used = block -
			(int32_t)p->rule[p->wait[k].stage].delay;
		uint32_t version = hd_ver_of(x->op == HD_INS_PIN ? block + 1 : used);
		if (x->stage == p->wait[k].stage && (x->op == HD_INS_REL || x->op == HD_INS_PIN) &&
			x->ver == version)
			return true;
	}
	return false;
}

static void updates_of_list(struct pass *p, const struct hd_ilist *from)
{
	for (uint32_t i = 0; i < from->len; i++) {
		const struct hd_ins *x = &from->at[i];
		if (x->op != HD_INS_PIN || !p->nwait)
			hd_pass_put(p->to, *x);
		if (ends_block(p, x, i))
			p->wait[p->nwait++] = *x;
		if (i + 1 < from->len && stays_before(p, &from->at[i + 1]) && p->nwait)
			continue;
		for (uint32_t k = 0; k < p->nwait; k++)
			end_block(p, &p->wait[k]);
		p->nwait = 0;
	}
}

/* Tied stages, and all where a norm clips, are updated together. */
static enum hd_err check_together(const struct pass *p, struct hd_diag *diag)
{
	for (uint32_t s = 1; p->job->clips && s < p->s->nstages; s++)
		if (p->rule[s].every != p->rule[0].every)
			return hd_fail(diag, HD_E_BADPLAN,
				"the job clips gradients, so all stages are updated together: stage 0 is "
				"every %u virtual nodes, "
				"stage %u every %u", p->rule[0].every, s, p->rule[s].every);
	for (uint32_t g = 0; g < p->job->ntied; g++)
		for (uint32_t s = 0, first = p->s->nstages; s < p->s->nstages; s++) {
			if (!p->job->tied[g].holds[s])
				continue;
			first = first == p->s->nstages ? s : first;
			if (p->rule[s].every != p->rule[first].every)
				return hd_fail(diag, HD_E_BADPLAN,
					"%s ties stages %u and %u, so they are updated together: one is "
					"every %u virtual nodes, "
					"the other every %u", p->job->tied[g].name, first, s,
					p->rule[first].every, p->rule[s].every);
		}
	return HD_OK;
}

static uint32_t most_buckets(const struct pass *p)
{
	uint32_t most = 1;

	for (uint32_t s = 0; s < p->s->nstages; s++)
		most = hd_buckets_of(p->job, s) > most ? hd_buckets_of(p->job, s) : most;
	return most;
}

enum hd_err hd_schedule_updates(struct hd_schedule *out, const struct hd_schedule *s,
	const struct hd_schedule_job *job,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_schedule_job nothing = { 0 };
	static const uint8_t done[] = { HD_INS_STEP, HD_INS_RED, HD_INS_TIE, HD_INS_NORM, HD_INS_VAL, 0 };
	struct pass p = { .s = s, .job = job ? job : &nothing };
	struct hd_schedule o;

	if (hd_schedule_has(s, done)) {
		*out = *s;
		return HD_OK;
	}
	p.pins = hd_schedule_has(s, (const uint8_t[]){ HD_INS_PIN, 0 });
	enum hd_err err = begin(&p, arena, diag);
	err = err ? err : refuse_eager(&p, diag);
	err = err ? err : check_together(&p, diag);
	/* a gradient may end a block: its buckets, ties, norm, step, validation */
	err = err ? err : hd_pass_begin(&o, s, 5 + most_buckets(&p) + p.job->ntied, 0, arena, diag);
	for (p.rank = 0; !err && p.rank < s->nranks; p.rank++) {
		find_held(&p);
		find_last(&p);
		find_ends(&p);
		for (int i = 0; i < HD_SECTIONS; i++) {
			if (!hd_section(s, i))
				continue;
			p.to = &hd_section(&o, i)[p.rank];
			updates_of_list(&p, &hd_section(s, i)[p.rank]);
		}
	}
	if (!err)
		*out = o;
	return err;
}
