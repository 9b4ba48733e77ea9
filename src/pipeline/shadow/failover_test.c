/* Ranks are lost at every instruction. What survivors then do is executed with numbers by a machine that
 * knows nothing of failover.c: everything ends, and each stage is updated once by the sum of an undisturbed
 * step. */
#include "pipeline/failover.h"

#include "pipeline/testing_shadows.h"
#include "tests/check.h"

enum { RANKS = 8, STAGES = 4, VNS = 8, MOST = 256 };

/* What a rank has, by stage and virtual node; 0: it has not. */
struct machine_rank {
	uint64_t rows[STAGES][VNS], act[STAGES][VNS], live[STAGES][VNS], grad[STAGES][VNS], copy[STAGES][VNS];
	uint64_t waits_w[STAGES][VNS];            /* of I without its W */
	uint64_t shadow_grad[STAGES][VNS];
	bool host[STAGES][VNS];
	/* gradients of weights by virtual node: sums are of named parts */
	uint64_t part[STAGES][VNS], shadow_part[STAGES][VNS], taken[STAGES];
	/* messages that lie here, and from which rank */
	uint64_t box_act[STAGES][VNS], box_grad[STAGES][VNS], box_copy[STAGES][VNS], box_ship[STAGES];
	bool had_act[STAGES][VNS], had_grad[STAGES][VNS], had_copy[STAGES][VNS];
	uint32_t at, stage, pipeline;
	bool lost, at_norm;
};

struct machine {
	const struct hd_schedule *s;
	uint32_t p, d, nvns;
	struct machine_rank rank[RANKS];
	uint32_t place[RANKS];                    /* of (pipeline, stage) */
	bool came[RANKS], norm[RANKS];            /* to RED: (pipeline, stage); to NORM: ranks */
	uint64_t total[STAGES]; bool whole[STAGES];
	uint32_t steps[RANKS];                    /* of (pipeline, stage) */
	uint64_t stepped[RANKS];
};

static uint64_t mix(uint64_t x, uint64_t y)
{
	x = (x ^ (y + 0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (x ^ (x >> 29)) | 1;
}

static uint64_t rows_of(uint32_t v) { return mix(1000 + v, 7); }
static uint64_t forward(uint64_t in, uint32_t s) { return mix(in, 100 + s); }
static uint64_t loss(uint64_t out, uint32_t v) { return mix(out, 200 + v); }
static uint64_t backward(uint64_t out_grad, uint64_t in, uint32_t s) { return mix(out_grad, in + 300 + s); }
static uint64_t weights(uint64_t out_grad, uint64_t in, uint32_t s) { return mix(out_grad, in + 400 +
	s) >> 8; }

/* What one virtual node gives a stage in a step that nothing disturbs, and the sum of all. */
static uint64_t gradient_of(uint32_t p, uint32_t stage, uint32_t v)
{
	uint64_t in[STAGES + 1] = { rows_of(v) }, g;

	for (uint32_t s = 0; s < p; s++)
		in[s + 1] = forward(in[s], s);
	g = loss(in[p], v);
	for (uint32_t s = p - 1; s > stage; s--)
		g = backward(g, in[s], s);
	return weights(g, in[stage], stage);
}

static uint64_t expected(uint32_t p, uint32_t nvns, uint32_t stage)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < nvns; v++)
		sum += gradient_of(p, stage, v);
	return sum;
}

static uint32_t pipeline_of(const struct machine *x, uint32_t v) { return v / (x->nvns / x->d); }

static void start(struct machine *x, const struct hd_schedule *s, uint32_t p, uint32_t d)
{
	*x = (struct machine){ .s = s, .p = p, .d = d, .nvns = s->nvns };
	for (uint32_t r = 0; r < p * d; r++) {
		x->rank[r].stage = r % p;
		x->rank[r].pipeline = r / p;
		x->place[r] = r;
	}
}

static bool inherits(const struct machine *x, const struct machine_rank *m, uint32_t stage)
{
	return m->stage != stage && &x->rank[x->place[m->pipeline * x->p + stage]] == m;
}

/* Adds a stage's parts that a rank has and no other has brought. */
static uint64_t sum_of(const struct machine *x, const struct machine_rank *m, uint32_t stage, bool got[VNS])
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < VNS; v++) {
		const uint64_t own = m->part[stage][v], other = inherits(x, m, stage) ?
			m->shadow_part[stage][v] : 0;
		CHECK(!own || !other, "virtual node %u of stage %u: the shadow had summed it", v, stage);
		sum += got[v] ? 0 : own + other;
		got[v] |= own || other;
	}
	return sum;
}

static void check_all_summed(const struct machine *x, uint32_t stage, const bool got[VNS])
{
	for (uint32_t v = 0; v < x->nvns; v++)
		CHECK(got[v], "stage %u: virtual node %u is in no sum", stage, v);
}

static bool reduce(struct machine *x, struct machine_rank *m, uint32_t stage)
{
	bool got[VNS] = { false };
	uint64_t sum = 0;

	x->came[m->pipeline * x->p + stage] = true;
	for (uint32_t k = 0; k < x->d && !x->whole[stage]; k++)
		if (!x->came[k * x->p + stage])
			return false;
	if (x->whole[stage])
		return true;
	for (uint32_t k = 0; k < x->d; k++)
		sum += sum_of(x, &x->rank[x->place[k * x->p + stage]], stage, got);
	check_all_summed(x, stage, got);
	x->total[stage] = sum;
	return x->whole[stage] = true;
}

static uint64_t reduced(const struct machine *x, const struct machine_rank *m, uint32_t stage)
{
	bool got[VNS] = { false };

	return x->whole[stage] ? x->total[stage] : sum_of(x, m, stage, got);
}

static bool step(struct machine *x, struct machine_rank *m, uint32_t stage, bool shadow)
{
	bool got[VNS] = { false };
	uint64_t sum = m->taken[stage];

	if (shadow)
		return sum == expected(x->p, x->nvns, stage);
	if (!sum && x->d > 1)
		sum = x->whole[stage] ? x->total[stage] : 0;
	else if (!sum) {
		sum = sum_of(x, m, stage, got);
		check_all_summed(x, stage, got);
	}
	x->steps[m->pipeline * x->p + stage]++;
	x->stepped[m->pipeline * x->p + stage] = sum;
	return sum != 0;
}

static bool take(uint64_t *to, uint64_t *box, bool *had)
{
	if (!*box)
		return false;
	*to = *box;
	if (had)
		*had = true;
	return true;
}

static bool send(struct machine *x, uint32_t peer, uint64_t *box, uint64_t value)
{
	if (value && !x->rank[peer].lost)
		*box = value;
	return value != 0;
}

static bool compute(struct machine *x, struct machine_rank *m, const struct hd_ins *i)
{
	const uint32_t s = i->stage, v = i->vn;
	const bool shadow = i->flags & HD_INS_SHADOW, last = s + 1 == x->p;
	uint64_t in = s ? m->act[s - 1][v] : m->rows[0][v] ? rows_of(v) : 0, out;

	switch (i->op) {
	case HD_INS_F:
		if (!in || (last && !m->rows[s][v]))
			return false;
		m->live[s][v] = in;
		m->act[s][v] = forward(in, s);
		return true;
	case HD_INS_W:
		if (!m->waits_w[s][v])
			return false;
		CHECK(!m->part[s][v], "W%u.%u twice", s, v);
		m->part[s][v] = m->waits_w[s][v];
		m->waits_w[s][v] = m->live[s][v] = 0;
		return true;
	default:
		out = last ? m->rows[s][v] ? loss(m->act[s][v], v) : 0 : m->stage != s && m->copy[s + 1][v] ?
			m->copy[s + 1][v] : m->grad[s + 1][v];
		if (!m->live[s][v] || m->host[s][v] || !out)
			return false;
		(shadow ? m->shadow_grad : m->grad)[s][v] = backward(out, m->live[s][v], s);
		if (i->op == HD_INS_I) {
			m->waits_w[s][v] = weights(out, m->live[s][v], s);
			return true;
		}
		CHECK(!(shadow ? m->shadow_part : m->part)[s][v], "B%u.%u twice", s, v);
		(shadow ? m->shadow_part : m->part)[s][v] = weights(out, m->live[s][v], s);
		m->live[s][v] = 0;
		return true;
	}
}

/* The next instruction of a rank, if it has what it needs. */
static bool go(struct machine *x, uint32_t r)
{
	struct machine_rank *m = &x->rank[r];
	const struct hd_ins *i = &x->s->list[r].at[m->at];
	const uint32_t s = i->stage, v = i->vn;
	const bool shadow = i->flags & HD_INS_SHADOW;
	bool done = true;

	if (m->lost || m->at >= x->s->list[r].len)
		return false;
	struct machine_rank *to = &x->rank[i->peer % (x->p * x->d)];
	switch (i->op) {
	case HD_INS_LD:  m->rows[s][v] = 1; break;
	case HD_INS_F: case HD_INS_B: case HD_INS_I: case HD_INS_W: done = compute(x, m, i); break;
	case HD_INS_OFF: done = m->live[s][v]; m->host[s][v] = true; break;
	case HD_INS_ON:  done = m->host[s][v]; m->host[s][v] = false; break;
	case HD_INS_SA:  done = send(x, i->peer, &to->box_act[s][v], m->act[s][v]); break;
	case HD_INS_HA:  done = m->act[s][v]; break;
	case HD_INS_RSG: case HD_INS_SG:
		done = send(x, i->peer, shadow ? &to->box_copy[s][v] : &to->box_grad[s][v], m->grad[s][v]);
		break;
	case HD_INS_HG:
		m->grad[s][v] = m->grad[s][v] ? m->grad[s][v] : m->shadow_grad[s][v];
		done = m->grad[s][v];
		break;
	case HD_INS_RA:  done = take(&m->act[s - 1][v], &m->box_act[s - 1][v], &m->had_act[s - 1][v]); break;
	case HD_INS_RG:
		done = shadow ? take(&m->copy[s + 1][v], &m->box_copy[s + 1][v], &m->had_copy[s + 1][v]) :
			take(&m->grad[s + 1][v], &m->box_grad[s + 1][v], &m->had_grad[s + 1][v]);
		break;
	case HD_INS_RED: done = reduce(x, m, s); break;
	case HD_INS_SHIP: done = send(x, i->peer, &to->box_ship[s], reduced(x, m, s)); break;
	case HD_INS_TAKE: done = take(&m->taken[s], &m->box_ship[s], NULL); break;
	case HD_INS_NORM:
		x->norm[r] = true;
		for (uint32_t k = 0; k < x->p * x->d; k++)
			done &= x->norm[k] || x->rank[k].lost;
		break;
	case HD_INS_STEP: done = step(x, m, s, shadow); break;
	default: break;
	}
	m->at += done;
	return done;
}

/* All go on as far as they can; `but` (or RANKS: none) stands still. */
static void go_all(struct machine *x, uint32_t but)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t r = 0; r < x->p * x->d; r++)
			while (r != but && go(x, r))
				moved = true;
	}
}

/* Others go on just as far as the rank needs to come to instruction `at`. */
static void go_to(struct machine *x, uint32_t r, uint32_t at, struct hd_dice *dice)
{
	while (x->rank[r].at < at) {
		bool moved = go(x, r);
		for (uint32_t tries = 0; !moved && tries < 10000; tries++)
			moved = go(x, hd_roll(dice, x->p * x->d));
		CHECK(moved, "rank %u never comes to %u", r, at);
	}
}

/* ---- the loss */

static const char *word(const struct hd_schedule *s, uint32_t r, uint32_t at)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	if (at < s->list[r].len)
		hd_ins_print(&s->list[r].at[at], &text);
	return at < s->list[r].len ? text.at : "its end";
}

/* Of what lost ranks have sent and is not taken yet, some does not arrive. */
static void lose_messages(struct machine *x, const bool *lost, uint32_t how, struct hd_dice *dice)
{
	for (uint32_t r = 0; r < x->p * x->d; r++)
		for (uint32_t s = 0; s < x->p; s++) {
			struct machine_rank *m = &x->rank[r];
			if (!lost[m->pipeline * x->p + s])
				continue;
			for (uint32_t v = 0; v < x->nvns; v++) {
				bool gone = how == 0 || (how == 2 && hd_roll(dice, 2));
				m->box_act[s][v] = gone && !m->had_act[s][v] ? 0 : m->box_act[s][v];
				m->box_grad[s][v] = gone && !m->had_grad[s][v] ? 0 : m->box_grad[s][v];
				m->box_copy[s][v] = gone && !m->had_copy[s][v] ? 0 : m->box_copy[s][v];
			}
			if (how == 0 || (how == 2 && hd_roll(dice, 2)))
				m->box_ship[s] = m->taken[s] ? m->box_ship[s] : 0;
		}
}

/* Gradients of lost ranks that peers of their stage hold already: some, if there are peers. */
static void settle(struct machine *x, const bool *lost, bool *settled, struct hd_dice *dice)
{
	for (uint32_t r = 0; r < x->p * x->d; r++) {
		struct machine_rank *m = &x->rank[r];
		const uint32_t s = m->stage, peer = (r + x->p) % (x->p * x->d);
		for (uint32_t v = 0; lost[r] && v < x->nvns; v++) {
			if (pipeline_of(x, v) != m->pipeline)
				continue;
			settled[s * x->nvns + v] = x->whole[s] || (x->d > 1 && !lost[peer] && m->part[s][v] &&
				hd_roll(dice, 2));
			if (x->whole[s] || !settled[s * x->nvns + v])
				continue;
			/* the machine's values are known: what the lost rank added is added there */
			x->rank[peer].part[s][v] = gradient_of(x->p, s, v);
		}
	}
}

static void look(const struct machine *x, const bool *lost, uint32_t *at, uint8_t *arrived, bool *shipped)
{
	const uint32_t n = x->p * x->d;

	for (uint32_t r = 0; r < n; r++) {
		const struct machine_rank *m = &x->rank[r];
		at[r] = m->at;
		shipped[r] = m->box_ship[(m->stage + 1) % x->p] || m->taken[(m->stage + 1) % x->p];
		for (uint32_t s = 0; s < x->p && !lost[r]; s++)
			for (uint32_t v = 0; v < x->nvns; v++)
				if (pipeline_of(x, v) == m->pipeline)
					arrived[s * x->nvns + v] |= (uint8_t)((m->box_act[s][v] ?
						HD_ARRIVED_ACT : 0) |
						(m->box_grad[s][v] ? HD_ARRIVED_GRAD : 0) |
						(m->box_copy[s][v] ? HD_ARRIVED_COPY : 0));
	}
}

/* From here on with the new lists. Memory of lost ranks is gone, their part in a sum that is not whole too.
 * */
static void lose(struct machine *x, const bool *lost, const struct hd_schedule *rest)
{
	const uint32_t n = x->p * x->d;

	x->s = rest;
	for (uint32_t r = 0; r < n; r++) {
		x->rank[r].at = 0;
		if (!lost[r])
			continue;
		const uint32_t k = r / x->p, s = r % x->p;
		x->rank[r] = (struct machine_rank){ .lost = true, .stage = s, .pipeline = k };
		x->place[r] = k * x->p + (s + x->p - 1) % x->p;
		x->came[r] = false;
		x->steps[r] = 0;
	}
}

static void check_end(const struct machine *x, const char *what, const char *lists)
{
	for (uint32_t r = 0; r < x->p * x->d; r++)
		CHECK(x->rank[r].lost || x->rank[r].at == x->s->list[r].len,
			"%s: rank %u waits for ever at #%u %s\n%s", what, r, x->rank[r].at,
			word(x->s, r, x->rank[r].at), lists);
	for (uint32_t r = 0; r < x->p * x->d; r++) {
		CHECK(x->steps[r] == 1, "%s: stage %u of pipeline %u is updated %u times\n%s", what, r % x->p,
			r / x->p, x->steps[r], lists);
		CHECK(x->stepped[r] == expected(x->p, x->nvns, r % x->p), "%s: stage %u has another sum\n%s",
			what, r % x->p, lists);
	}
}

struct counts { uint32_t cases, refused; };

/* Nothing goes to a lost rank, and what survivors have summed is not summed again. */
static void check_rest(const struct machine *x, const struct hd_schedule *rest, const bool *lost,
	const bool *settled, const char *what)
{
	for (uint32_t r = 0; r < rest->nranks; r++) {
		CHECK(!lost[r] || rest->list[r].len == 0, "%s: rank %u has a list", what, r);
		for (uint32_t i = 0; i < rest->list[r].len; i++) {
			const struct hd_ins *ins = &rest->list[r].at[i];
			const bool inherited = ins->stage != x->rank[r].stage &&
				!(ins->flags & HD_INS_SHADOW);
			CHECK(!hd_ins_uses(ins->op, '>') || !lost[ins->peer], "%s: rank %u sends %s", what, r,
				word(rest, r, i));
			CHECK(!inherited || (ins->op != HD_INS_B && ins->op != HD_INS_W) ||
				!settled[ins->stage * x->nvns + ins->vn], "%s: %s again", what, word(rest,
				r, i));
		}
	}
}

/* The machine stands where the loss is; it is played on to the end. */
static void lose_and_end(struct machine *x, const bool *lost, uint32_t how, struct hd_dice *dice,
	struct counts *n, const char *what)
{
	uint32_t at[RANKS];
	uint8_t arrived[STAGES * VNS] = { 0 };
	bool settled[STAGES * VNS] = { false }, shipped[RANKS] = { false };
	struct hd_schedule rest;
	struct hd_diag diag = { "" };
	bool apart = true;

	lose_messages(x, lost, how, dice);
	settle(x, lost, settled, dice);
	look(x, lost, at, arrived, shipped);
	for (uint32_t r = 0; r < x->p * x->d; r++)
		apart &= !(lost[r] && lost[r / x->p * x->p + (r + 1) % x->p]);
	enum hd_err err = hd_failover(&rest, x->s, &(struct hd_step_progress){ .at = at, .arrived = arrived,
		.settled = settled, .shipped = shipped }, lost, &arena, &diag);
	n->cases++;
	n->refused += err == HD_E_REFUSED;
	CHECK(err == (apart ? HD_OK : HD_E_REFUSED), "%s: %s", what, diag.text);
	if (err)
		return;
	check_rest(x, &rest, lost, settled, what);
	lose(x, lost, &rest);
	go_all(x, RANKS);
	check_end(x, what, hd_printed_schedule(&rest));
}

static const char *const kinds[] = { "gpipe", "1f1b", "zb-h1" };

static struct hd_schedule lists_of(const char *kind, uint32_t p, uint32_t d, enum hd_redundancy mode,
	enum hd_shadow_place place)
{
	struct hd_schedule s = hd_side_by_side(kind, p, VNS / d, d), out = { 0 };
	struct hd_stage_costs costs;
	struct hd_diag diag = { "" };

	CHECK(hd_stage_costs_even(&costs, &HD_UNIT_COSTS, p, &arena, &diag) == HD_OK, "%s", diag.text);
	const struct hd_sim_setting set = { .costs = &costs };
	CHECK(hd_redundancy_add(&out, &s, &(struct hd_redundancy_ask){ mode, place, &set }, &arena,
		&diag) == HD_OK,
		"%s", diag.text);
	return out;
}

static void the_machine_itself_ends_undisturbed(void **state)
{
	static struct machine x;
	struct hd_schedule s;

	(void)state;
	for (uint32_t p = 2; p <= STAGES; p++)
		for (uint32_t d = 1; d <= 2; d++)
			for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++) {
				s = lists_of("1f1b", p, d, (enum hd_redundancy)mode, HD_SHADOW_PLACE_AUTO);
				start(&x, &s, p, d);
				go_all(&x, RANKS);
				check_end(&x, "undisturbed", "");
			}
}

/* Others wait, go on at random, or come as far as they can; what was on its way is lost, comes, or some of
 * it. */
static void any_rank_may_be_lost_at_any_instruction(void **state)
{
	static struct machine x;
	struct hd_dice dice = { 3 };
	struct counts n = { 0 };
	char what[120];

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (uint32_t p = 2; p <= STAGES; p++)
			for (uint32_t d = 1; d <= 2; d++)
				for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
					for (uint32_t victim = 0; victim < p * d; victim++) {
						hd_arena_reset(&arena);
						struct hd_schedule s = lists_of(kinds[k], p, d,
							(enum hd_redundancy)mode, victim % 2 ?
							HD_SHADOW_PLACE_GAPS :
							HD_SHADOW_PLACE_RECEIVES);
						for (uint32_t at = 0; at <= s.list[victim].len; at++)
							for (uint32_t how = 0; how < 3; how++) {
								bool lost[RANKS] = { false };
								lost[victim] = true;
								snprintf(what, sizeof what,
									"%s p %u d %u %s: rank %u at #%u %s, "
									"%u",
									kinds[k], p, d,
									hd_redundancy_names[mode], victim,
									at, word(&s, victim, at), how);
								start(&x, &s, p, d);
								go_to(&x, victim, at, &dice);
								for (uint32_t more = how == 1 ? 400 :
									0; more; more--) {
									uint32_t r = hd_roll(&dice, p * d);
									if (r != victim)
										go(&x, r);
								}
								if (how == 2)
									go_all(&x, victim);
								lose_and_end(&x, lost, how, &dice, &n, what);
							}
					}
	CHECK(n.cases > 20000 && n.refused == 0, "%u cases, %u refused", n.cases, n.refused);
}

static void any_two_ranks_may_be_lost_unless_they_are_neighbours(void **state)
{
	static struct machine x;
	struct hd_dice dice = { 11 };
	struct counts n = { 0 };
	char what[120];

	(void)state;
	for (uint32_t round = 0; round < DRAWS(12000); round++) {
		const uint32_t p = STAGES, d = 1 + round % 2;
		const enum hd_redundancy mode = (enum hd_redundancy)(1 + hd_roll(&dice, 3));
		const char *kind = kinds[hd_roll(&dice, 3)];
		if (round % 64 == 0)
			hd_arena_reset(&arena);
		struct hd_schedule s = lists_of(kind, p, d, mode, HD_SHADOW_PLACE_RECEIVES);
		uint32_t a = hd_roll(&dice, p * d), b = hd_roll(&dice, p * d);
		bool lost[RANKS] = { false };
		lost[a] = lost[b] = true;
		start(&x, &s, p, d);
		go_to(&x, a, hd_roll(&dice, s.list[a].len + 1), &dice);
		for (uint32_t more = hd_roll(&dice, 300); more; more--)
			go(&x, hd_roll(&dice, p * d));
		snprintf(what, sizeof what, "%s d %u %s: ranks %u at #%u %s and %u at #%u %s", kind, d,
			hd_redundancy_names[mode], a, x.rank[a].at, word(&s, a, x.rank[a].at), b,
			x.rank[b].at,
			word(&s, b, x.rank[b].at));
		lose_and_end(&x, lost, round % 3, &dice, &n, what);
	}
	CHECK(n.refused > n.cases / 8 && n.refused < n.cases / 2, "%u cases, %u refused", n.cases, n.refused);
}

/* ---- at times of a simulated step */

static struct hd_sim_plan simulated(const struct hd_schedule *s, const struct hd_stage_costs *costs)
{
	const struct hd_sim_setting set = { .costs = costs, .hop = HD_UNIT_PS / 4, .spans = true };
	struct hd_sim_plan sim = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_sim_plan(&sim, s, &set, &arena, &diag) == HD_OK, "%s", diag.text);
	return sim;
}

static void progress_of_a_simulated_step_can_be_gone_on_from(void **state)
{
	static struct machine x;
	struct hd_dice dice = { 17 };
	struct counts n = { 0 };
	char what[120];

	(void)state;
	for (uint32_t round = 0; round < DRAWS(3000); round++) {
		const uint32_t d = 1 + round % 2;
		if (round % 64 == 0)
			hd_arena_reset(&arena);
		struct hd_schedule s = lists_of(kinds[round % 3], STAGES, d, (enum hd_redundancy)(1 +
			hd_roll(&dice,
			3)), HD_SHADOW_PLACE_AUTO), rest;
		struct hd_stage_costs costs;
		struct hd_diag diag = { "" };
		struct hd_step_progress now;
		CHECK(hd_stage_costs_even(&costs, &HD_UNIT_COSTS, STAGES, &arena, &diag) == HD_OK, "costs");
		struct hd_sim_plan sim = simulated(&s, &costs);
		const int64_t time = sim.makespan / 40 * (int64_t)hd_roll(&dice, 41);
		bool lost[RANKS] = { false };
		const uint32_t victim = hd_roll(&dice, STAGES * d);
		lost[victim] = true;
		snprintf(what, sizeof what, "round %u: rank %u", round, victim);
		CHECK(hd_step_progress_at(&now, &sim, time, &arena, &diag) == HD_OK, "%s", diag.text);
		start(&x, &s, STAGES, d);
		for (bool moved = true; moved;) {
			moved = false;
			for (uint32_t r = 0; r < STAGES * d; r++)
				while (x.rank[r].at < now.at[r] && go(&x, r))
					moved = true;
		}
		for (uint32_t r = 0; r < STAGES * d; r++) {
			CHECK(x.rank[r].at == now.at[r], "%s: rank %u is at %u, not %u", what, r,
				x.rank[r].at,
				now.at[r]);
			const struct hd_ins *next = &s.list[r].at[now.at[r]];
			CHECK(now.at[r] == s.list[r].len || (next->op != HD_INS_SA &&
				next->op != HD_INS_SG) ||
				sim.span[r][now.at[r]].start > time, "%s: rank %u had sent", what, r);
		}
		for (uint32_t k = 0; d > 1 && k < STAGES * VNS; k++)
			CHECK(now.settled[k] == x.whole[k / VNS], "%s: stage %u is summed", what, k / VNS);
		/* what was under way is lost */
		for (uint32_t r = 0; r < STAGES * d; r++)
			for (uint32_t k = 0; k < STAGES; k++)
				for (uint32_t v = 0; v < VNS; v++) {
					struct machine_rank *m = &x.rank[r];
					const uint8_t here = now.arrived[k * VNS + v];
					if (!lost[m->pipeline * STAGES + k])
						continue;
					m->box_act[k][v] = here & HD_ARRIVED_ACT ? m->box_act[k][v] : 0;
					m->box_grad[k][v] = here & HD_ARRIVED_GRAD ? m->box_grad[k][v] : 0;
					m->box_copy[k][v] = here & HD_ARRIVED_COPY ? m->box_copy[k][v] : 0;
				}
		CHECK(hd_failover(&rest, &s, &now, lost, &arena, &diag) == HD_OK, "%s: %s", what, diag.text);
		lose(&x, lost, &rest);
		go_all(&x, RANKS);
		check_end(&x, what, hd_printed_schedule(&rest));
		n.cases++;
	}
	CHECK(n.cases >= DRAWS(3000), "%u cases", n.cases);
}

/* What is computed of the lost stage that the lost rank had computed: forward 1, backward 2. */
static uint64_t done_again(const struct hd_schedule *s, uint32_t victim, uint32_t at,
	const struct hd_schedule *rest)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < at; i++) {
		const struct hd_ins *a = &s->list[victim].at[i];
		for (uint32_t r = 0; r < s->nranks; r++)
			for (uint32_t k = 0; k < rest->list[r].len; k++) {
				const struct hd_ins *b = &rest->list[r].at[k];
				if (!hd_ins_redundant(a) && !hd_ins_redundant(b) && a->op == b->op &&
					a->stage == b->stage && a->vn == b->vn)
					sum += a->op == HD_INS_F ? 1 : a->op == HD_INS_B ? 2 : 0;
			}
	}
	return sum;
}

/* The goal of the design: eager does at most 0.8 of what lazy does again. Summed over losses at the end of
 * each instruction that all modes have. */
static void eager_does_less_again(enum hd_shadow_place place)
{
	uint64_t sum[HD_NREDUNDANCIES] = { 0 };

	for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
		for (uint32_t victim = 0; victim < STAGES; victim++) {
			struct hd_schedule s = lists_of("1f1b", STAGES, 1, (enum hd_redundancy)mode,
				place), rest;
			struct hd_stage_costs costs;
			struct hd_diag diag = { "" };
			const struct hd_rank_costs full = { .f = HD_UNIT_PS, .i = HD_UNIT_PS,
				.w = HD_UNIT_PS };
			CHECK(hd_stage_costs_even(&costs, &full, STAGES, &arena, &diag) == HD_OK, "costs");
			struct hd_sim_plan sim = simulated(&s, &costs);
			for (uint32_t i = 0; i < s.list[victim].len; i++) {
				bool lost[STAGES] = { false };
				struct hd_step_progress now;
				if (hd_ins_redundant(&s.list[victim].at[i]))
					continue;
				lost[victim] = true;
				CHECK(hd_step_progress_at(&now, &sim, sim.span[victim][i].end, &arena,
					&diag) == HD_OK,
					"%s", diag.text);
				CHECK(hd_failover(&rest, &s, &now, lost, &arena, &diag) == HD_OK, "%s",
					diag.text);
				sum[mode] += done_again(&s, victim, now.at[victim], &rest);
			}
		}
	CHECK(10 * sum[HD_REDUNDANCY_EAGER] <= 8 * sum[HD_REDUNDANCY_LAZY] && sum[HD_REDUNDANCY_FULL] <
		sum[HD_REDUNDANCY_EAGER], "lazy %llu, eager %llu, full %llu", (unsigned long long)sum[1],
		(unsigned long long)sum[2], (unsigned long long)sum[3]);
}

static void eager_does_less_again_than_lazy(void **state)
{
	(void)state;
	eager_does_less_again(HD_SHADOW_PLACE_RECEIVES);
	eager_does_less_again(HD_SHADOW_PLACE_GAPS);
}

static void what_cannot_be_mended_is_refused(void **state)
{
	static const uint32_t at[STAGES] = { 0 };
	static const uint8_t arrived[STAGES * VNS] = { 0 };
	static const bool stale[STAGES] = { [1] = true }, second[STAGES] = { [2] = true },
		two[STAGES] = { true, false, false, true };
	struct hd_schedule s, out;
	struct hd_diag diag = { "" };

	(void)state;
	s = lists_of("1f1b", STAGES, 1, HD_REDUNDANCY_LAZY, HD_SHADOW_PLACE_RECEIVES);
	struct hd_step_progress now = { .at = at, .arrived = arrived, .stale = stale };
	assert_int_equal(hd_failover(&out, &s, &now, second, &arena, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text,
		"rank 2 is lost, and its shadow on rank 1 is older than the last commit");
	diag.text[0] = '\0';
	assert_int_equal(hd_failover(&out, &s, &now, two, &arena, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text, "ranks 3 and 0 are lost: the one held the shadow of the other's stage "
		"0");
	s = hd_side_by_side("1f1b", STAGES, VNS, 1);
	diag.text[0] = '\0';
	assert_int_equal(hd_failover(&out, &s, &now, second, &arena, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text, "there are no shadow stages");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_machine_itself_ends_undisturbed, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(any_rank_may_be_lost_at_any_instruction, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(any_two_ranks_may_be_lost_unless_they_are_neighbours,
		make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(progress_of_a_simulated_step_can_be_gone_on_from,
		make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(eager_does_less_again_than_lazy, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_cannot_be_mended_is_refused, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
