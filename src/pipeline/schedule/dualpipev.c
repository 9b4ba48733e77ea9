/* DualPipe cut at its mirror (DeepSeek 2024): two chunks a rank placed like a V, forwards and
 * backwards in pairs. The mirrored form would hold every parameter twice and gain nothing. */
#include "pipeline/schedule/kind.h"

struct dualpipe_state {
	struct hd_emit *e;
	uint32_t stage[2], forwards[2], backs[2];         /* of chunk a (0) and z (1) */
	/* where the oldest I without its W stands, at the earliest */
	uint32_t pending;
	uint32_t nweights;
};
enum { A, Z };

static void forward(struct dualpipe_state *s, int c) { hd_emit(s->e, HD_INS_F, s->stage[c], s->forwards[c]++);
	}

static void back(struct dualpipe_state *s, int c, bool split)
{
	hd_emit(s->e, split ? HD_INS_I : HD_INS_B, s->stage[c], s->backs[c]++);
	s->nweights += split;
}

/* The oldest waiting gradient of weights; nothing if none waits. */
static void weights(struct dualpipe_state *s)
{
	if (!s->nweights)
		return;
	while (s->e->list->at[s->pending].op != HD_INS_I)
		s->pending++;
	const struct hd_ins input = s->e->list->at[s->pending++];
	hd_emit(s->e, HD_INS_W, input.stage, input.vn);
	s->nweights--;
}

static void pair(struct dualpipe_state *s, int f, int b)
{
	struct hd_ilist *list = s->e->list;

	forward(s, f);
	list->at[list->len - 1].flags = HD_INS_PAIR_BEGIN;
	back(s, b, false);
	list->at[list->len - 1].flags = HD_INS_PAIR_END;
}

static void middle(struct dualpipe_state *s, uint32_t p, uint32_t r, uint32_t m)
{
	for (uint32_t j = 0; j <= m - 2 * p + r; j++) {
		if (j == 0 && r == p - 1) {
			forward(s, A);
			back(s, Z, false);
		} else {
			pair(s, A, Z);
		}
		pair(s, Z, A);
	}
	for (uint32_t j = 0; j < p - r - 1; j++) {
		back(s, Z, false);
		pair(s, Z, A);
	}
}

static void list(struct hd_emit *e)
{
	const uint32_t p = e->p, r = e->r, half = (r + 1) / 2;
	struct dualpipe_state s = { .e = e, .stage = { hd_v_down(e), hd_v_up(e) } };
	bool split = false;

	for (uint32_t j = 0; j < 2 * (p - r - 1); j++)
		forward(&s, A);
	for (uint32_t j = 0; j <= r; j++) {
		forward(&s, A);
		forward(&s, Z);
	}
	for (uint32_t j = 0; j < p - r - 1; j++) {
		back(&s, Z, true);
		weights(&s);
		forward(&s, Z);
	}
	middle(&s, p, r, e->m);
	for (uint32_t j = 0; j <= r; j++) {
		split |= j == half && r % 2 == 1;
		back(&s, Z, split);
		split |= j == half && r % 2 == 0;
		back(&s, A, split);
	}
	for (uint32_t j = 0; j < p - r - 1; j++) {
		weights(&s);
		back(&s, A, true);
	}
	while (s.nweights)
		weights(&s);
}

static enum hd_err limits(const struct hd_emit *e) { return e->m < 2 * e->p ? hd_limit(e, "m >= 2p",
	2 * e->p) : HD_OK; }

const struct hd_schedule_maker hd_make_dualpipev = { HD_PLACE_V, true, limits, list, NULL };
