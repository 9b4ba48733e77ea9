#include "engine/pipe_int.h"

#include "engine/parcel.h"
#include "engine/post.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

/* How many buffers the lists of a plan hold at once, and how many bytes those are. */

/* ---- how much is held at once ---- */

struct pipe_held { uint32_t arenas, away, mail[HD_MAILS]; };
struct pipe_count { struct pipe_held now, most; uint32_t kept[HD_MAILS]; };

static uint32_t most_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void more(uint32_t *now, uint32_t *most)
{
	++*now;
	*most = *now > *most ? *now : *most;
}

static bool is_on(const struct hd_pipe *pipe, uint32_t stage, uint32_t vn, uint32_t rank)
{
	return hd_cell_of(pipe, stage, vn)->rank == rank;
}

static struct pipe_count *count_of(const struct hd_pipe *pipe, struct pipe_count *counts, uint32_t stage,
	uint32_t vn)
{
	return &counts[hd_cell_of(pipe, stage, vn)->seat - pipe->seat];
}

/* Of a shadow; its mail has buffers for all. */
static void count_shadow(const struct hd_pipe *pipe, struct pipe_count *counts, const struct hd_ins *ins)
{
	struct hd_cell *cell = hd_cell_for(pipe, ins, ins->stage);
	struct pipe_count *c = cell->seat ? &counts[cell->seat - pipe->seat] : NULL;

	switch (ins->op) {
	case HD_INS_F:  more(&c->now.arenas, &c->most.arenas); break;
	case HD_INS_RG: more(&c->now.mail[HD_MAIL_GRAD], &c->most.mail[HD_MAIL_GRAD]); break;
	case HD_INS_B:  c->now.arenas--; break;
	case HD_INS_OFF:
		c->now.arenas--;
		more(&c->now.away, &c->most.away);
		break;
	case HD_INS_ON:
		more(&c->now.arenas, &c->most.arenas);
		c->now.away--;
		break;
	default: break;
	}
}

/* As pipe.c does it. */
static void count_ins(const struct hd_pipe *pipe, struct pipe_count *counts, uint32_t r,
	const struct hd_ins *ins)
{
	const uint32_t s = ins->stage, v = ins->vn, after = hd_pipe_next(pipe, s),
		before = hd_pipe_before(pipe, s);
	struct pipe_count *c = count_of(pipe, counts, s, v);
	struct hd_cell *cell = hd_cell_of(pipe, s, v);
	bool sends = after != HD_NONE && !is_on(pipe, after, v, r), ends = false;

	switch (ins->op) {
	case HD_INS_F:
		more(&c->now.arenas, &c->most.arenas);
		if (after != HD_NONE && !sends) {
			struct pipe_count *next = count_of(pipe, counts, after, v);
			more(&next->now.mail[HD_MAIL_ACT], &next->most.mail[HD_MAIL_ACT]);
		}
		c->now.arenas -= cell->light && !sends;
		break;
	case HD_INS_SA: c->now.arenas -= cell->light; break;
	case HD_INS_R:  more(&c->now.arenas, &c->most.arenas); break;
	case HD_INS_OFF:
		c->now.arenas--;
		more(&c->now.away, &c->most.away);
		break;
	case HD_INS_ON:
		more(&c->now.arenas, &c->most.arenas);
		c->now.away--;
		break;
	case HD_INS_RA: more(&c->now.mail[HD_MAIL_ACT], &c->most.mail[HD_MAIL_ACT]); break;
	case HD_INS_RG: more(&c->now.mail[HD_MAIL_GRAD], &c->most.mail[HD_MAIL_GRAD]); break;
	case HD_INS_B: case HD_INS_I:
		if (before != HD_NONE && is_on(pipe, before, v, r)) {
			struct pipe_count *to = count_of(pipe, counts, before, v);
			more(&to->now.mail[HD_MAIL_GRAD], &to->most.mail[HD_MAIL_GRAD]);
		}
		ends = ins->op == HD_INS_B;
		break;
	case HD_INS_W: case HD_INS_SG: ends = true; break;
	default: break;
	}
	if (ends && --cell->left == 0) {
		c->now.arenas--;
		c->now.mail[HD_MAIL_ACT] -= before != HD_NONE;
		c->now.mail[HD_MAIL_GRAD] -= after != HD_NONE;
	}
}

/* Other ranks that send to a seat. */
static uint32_t senders(const struct hd_pipe *pipe, const struct hd_seat *seat, enum hd_mail kind)
{
	const uint32_t other = kind == HD_MAIL_ACT ? hd_pipe_before(pipe, seat->stage) :
		hd_pipe_next(pipe, seat->stage);
	uint64_t seen[HD_MAX_RANKS / 64] = { 0 };
	uint32_t n = 0;

	if (seat->shadow || other == HD_NONE)
		return 0;
	for (uint32_t v = 0; v < pipe->nvns; v++) {
		uint32_t r = hd_cell_of(pipe, other, v)->rank;
		if (hd_cell_of(pipe, seat->stage, v)->seat != seat || r == seat->rank ||
			seen[r / 64] >> r % 64 & 1)
			continue;
		seen[r / 64] |= UINT64_C(1) << r % 64;
		n++;
	}
	return n;
}

static void count_kept(const struct hd_pipe *pipe, struct pipe_count *counts)
{
	for (size_t i = 0; i < pipe->ncells; i++)
		for (int kind = 0; kind < HD_MAILS && pipe->cell[i].seat; kind++)
			counts[pipe->cell[i].seat - pipe->seat].kept[kind] += pipe->cell[i].keeps >> kind & 1;
}

/* Of the neighbour stage that gets it. */
static uint64_t kept_bytes(const struct hd_pipe *pipe, const struct hd_seat *seat, enum hd_mail kind)
{
	const uint32_t to = hd_pipe_to(pipe, seat->stage, kind);

	if (kind == HD_MAIL_ACT)
		return to == HD_NONE ? 0 : pipe->stage[to].act.bytes;
	return to == HD_NONE ? 0 : pipe->stage[to].grad.bytes;
}

enum hd_err hd_pipe_also(struct hd_pipe *pipe, const struct hd_ilist *list, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct pipe_count *counts = hd_arena_take(arena, pipe->nseats, sizeof *counts);

	if (!counts)
		return hd_pipe_no_memory(diag);
	for (size_t i = 0; i < pipe->ncells; i++)
		pipe->cell[i].left = pipe->cell[i].ends;
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; i < list[r].len && pipe->device_of[r] != HD_NONE; i++)
			if (hd_ins_uses(list[r].at[i].op, 'v') && list[r].at[i].flags & HD_INS_SHADOW)
				count_shadow(pipe, counts, &list[r].at[i]);
			else if (hd_ins_uses(list[r].at[i].op, 'v'))
				count_ins(pipe, counts, r, &list[r].at[i]);
	count_kept(pipe, counts);
	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_seat *seat = &pipe->seat[i];
		const struct hd_pipe_stage *stage = &pipe->stage[seat->stage];
		seat->arena.cap = most_of(seat->arena.cap, counts[i].most.arenas);
		seat->arena.bytes = hd_pipe_line_up(stage->tensor.whole.memory.len_bytes);
		seat->away.cap = most_of(seat->away.cap, counts[i].most.away);
		for (int kind = 0; kind < HD_MAILS; kind++) {
			seat->mail[kind].cap = most_of(seat->mail[kind].cap, counts[i].most.mail[kind] +
				HD_CREDITS * senders(pipe, seat, (enum hd_mail)kind));
			seat->mail[kind].bytes = kind == HD_MAIL_ACT ? stage->act.bytes : stage->grad.bytes;
			seat->kept[kind].cap = most_of(seat->kept[kind].cap, counts[i].kept[kind]);
			seat->kept[kind].bytes = kept_bytes(pipe, seat, (enum hd_mail)kind);
		}
	}
	return HD_OK;
}

/* Seats of one stage have vectors of their own: first the one that runs virtual node 0, whose first root is
 * the leftmost of the tree. */
uint32_t hd_pipe_count_vectors(const struct hd_pipe *pipe)
{
	uint32_t most = 1;

	for (uint32_t s = 0; s < pipe->nstages; s++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < pipe->nseats; i++)
			n += pipe->seat[i].stage == s ? pipe->seat[i].script.nbuffers : 0;
		most = n > most ? n : most;
	}
	return most;
}

/* Vector v of each stage's is vector v of the worker's: what the stages that have so many write. */
static uint64_t bytes_of_vector(const struct hd_pipe *pipe, uint32_t v, struct hd_memory_part *part)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < pipe->nstages; s++) {
		const struct hd_pipe_stage *stage = &pipe->stage[s];
		uint32_t of = 0;
		for (uint32_t i = 0; i < pipe->nseats; i++)
			of += pipe->seat[i].stage == s ? pipe->seat[i].script.nbuffers : 0;
		for (uint32_t k = 0; k < stage->nruns && v < of; k++)
			part[n++] = (struct hd_memory_part){ stage->run[k].at * sizeof(float),
				(stage->run[k].at + stage->run[k].len) * sizeof(float) };
	}
	return hd_memory_taken_by(part, n, pipe->worker->stage->flat_bytes);
}

enum hd_err hd_pipe_count_vector_bytes(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < pipe->nstages; s++)
		n += pipe->stage[s].nruns;
	struct hd_memory_part *part = hd_arena_take(arena, n + 1, sizeof *part);
	pipe->vector_bytes = hd_arena_take(arena, pipe->nvectors, sizeof *pipe->vector_bytes);
	if (!part || !pipe->vector_bytes)
		return hd_pipe_no_memory(diag);
	for (uint32_t v = 0; v < pipe->nvectors; v++)
		pipe->vector_bytes[v] = bytes_of_vector(pipe, v, part);
	return HD_OK;
}

/* ---- bytes of a device ---- */

static uint64_t pool_bytes(const struct hd_mail_pool *pool) { return pool->cap * pool->bytes; }

static uint64_t arena_bytes(const struct hd_pipe *pipe, const struct hd_seat *seat, uint32_t device)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < seat->arena.cap; i++)
		n += seat->device + hd_pipe_home(pipe, i) == device;
	return n * seat->arena.bytes;
}

uint64_t hd_pipe_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		const struct hd_seat *seat = &pipe->seat[i];
		bytes += arena_bytes(pipe, seat, device);
		if (seat->device == device)
			for (int kind = 0; kind < HD_MAILS; kind++)
				bytes += pool_bytes(&seat->mail[kind]) + pool_bytes(&seat->kept[kind]);
	}
	return bytes + hd_post_bytes(pipe, device) + hd_parcel_bytes(pipe, device) +
		hd_shadows_bytes(pipe, device);
}

uint64_t hd_pipe_idle_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		const struct hd_seat *seat = &pipe->seat[i];
		if (seat->arena.bytes)
			bytes += arena_bytes(pipe, seat, device) / seat->arena.bytes *
				pipe->stage[seat->stage].idle_bytes;
	}
	return bytes;
}

/* Flat vectors are dealt to the pools of the ranks in turn. */
uint32_t hd_pipe_vectors_of(const struct hd_pipe *pipe, uint32_t device)
{
	const uint32_t n = pipe->first_vector + pipe->nvectors;

	return n / pipe->ndevices + (device < n % pipe->ndevices);
}

uint64_t hd_pipe_vector_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t v = 0; v < pipe->nvectors; v++)
		bytes += (pipe->first_vector + v) % pipe->ndevices == device ? pipe->vector_bytes[v] : 0;
	return bytes;
}
