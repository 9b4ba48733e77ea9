#include "engine/values.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"
#include "sys/failpoint.h"
#include "engine/part_int.h"
#include "engine/worker_int.h"

struct hd_values *hd_worker_values(struct hd_worker *w) { return w->values; }

void hd_values_clear(struct hd_values *v)
{
	memset(v->made, 0, (size_t)v->nvns * v->nnodes * sizeof *v->made);
	memset(v->state, 0, v->nsegments * sizeof *v->state);
	v->has_state = false;
}

enum hd_err hd_values_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_job_value *every = &w->task->job->value[HD_JOB_VALUES];

	if (every->is_none)
		return HD_OK;
	struct hd_values *v = w->values = hd_arena_take(&w->arena, 1, sizeof *v);
	if (v) {
		*v = (struct hd_values){ .every = (uint64_t)every->i, .nvns = w->task->job->nvns,
			.nnodes = w->task->train.nnodes, .nsegments = w->task->layout.nsegments };
		v->made = hd_arena_take(&w->arena, (size_t)v->nvns * v->nnodes, sizeof *v->made);
		v->state = hd_arena_take(&w->arena, v->nsegments + 1, sizeof *v->state);
	}
	return v && v->made && v->state ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for digests of %u nodes of %u virtual nodes: trace.values: none",
		w->task->train.nnodes, w->task->job->nvns);
}

void hd_values_begin(struct hd_worker *w)
{
	if (!w->values)
		return;
	if (hd_values_any(w->values))
		hd_values_clear(w->values);
	w->values->step = (uint64_t)w->count.step;
	w->values->looks = w->values->step % w->values->every == 0;
}

static uint64_t number_of(struct hd_hash hash)
{
	const uint64_t number = hd_get64(hash.byte);

	return number ? number : 1;
}

static uint64_t joined(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = { a, b };

	return number_of(hd_hash(both, sizeof both));
}

/* ---- values ---- */

static uint64_t digest_of(const struct hd_program *p, const struct hd_bind *bind, const struct hd_node *node,
	uint32_t ipart)
{
	const uint64_t rows = bind->part[ipart].rows;
	struct hd_hasher all;

	hd_hasher_init(&all);
	for (uint32_t v = node->out; v < node->out + node->nout; v++) {
		void *at = hd_program_part(p, bind, v, ipart);
		size_t len = hd_value_bytes(&p->graph->value[v], rows);
		(void)HD_FAILPOINT_KEY_BYTES(VALUE_MADE, bind->part[ipart].vn, at, &len);
		hd_hasher_add(&all, at, len);
	}
	return number_of(hd_hasher_end(&all));
}

/* Of slices all but the first join what is there; else what is there is of another run of the node. */
static void mark(const struct hd_look *look, struct hd_mark *at, uint64_t digest, bool follows)
{
	const bool same = at->digest == digest && !follows;

	if (at->digest && !same)
		digest = joined(at->digest, digest);
	*at = (struct hd_mark){ digest, (uint16_t)look->rank->id, look->stage };
}

static void look_at(void *user, const struct hd_program *program, const struct hd_bind *bind, uint32_t inode,
	uint32_t ipart)
{
	const struct hd_look *look = user;
	struct hd_values *values = look->rank->worker->values;
	const struct hd_node *node = &program->graph->node[inode];
	const uint32_t of = look->node_of ? look->node_of[inode] : inode;

	mark(look, &values->made[(size_t)bind->part[ipart].vn * values->nnodes + of],
		digest_of(program, bind, node, ipart), bind->draw.row0 > 0);
}

void hd_values_watch(struct hd_rank *rank, uint16_t stage, const uint32_t *node_of, struct hd_bind *bind)
{
	if (!rank->worker->values || !rank->worker->values->looks)
		return;
	rank->look = (struct hd_look){ rank, node_of, stage };
	bind->ran = look_at;
	bind->ran_user = &rank->look;
}

/* A stage has the nodes of the whole graph that are its own, in their order (stages.h, rule 3). */
uint32_t *hd_values_nodes(const struct hd_graph_stages *cuts, uint32_t stage, struct hd_arena *arena)
{
	const uint32_t n = cuts->stage[stage].graph.nnodes;
	uint32_t *of = hd_arena_take(arena, n + 1, sizeof *of), k = 0;

	for (uint32_t i = 0; of && i < cuts->whole->nnodes; i++)
		if (cuts->of_node[i] == stage) {
			assert(k < n && cuts->whole->node[i].op == cuts->stage[stage].graph.node[k].op);
			of[k++] = i;
		}
	assert(!of || k == n);
	return of;
}

/* ---- the state after the update ---- */

static bool updates(const struct hd_worker *w, uint32_t bucket)
{
	return !(w->spec.by_stage || hd_dist_sharded(w)) || hd_worker_owns(w, bucket);
}

static uint64_t digest_state(const struct hd_worker *w, const struct hd_segment *s)
{
	struct hd_hash of[HD_VECS];
	uint32_t n = 0;

	for (; n <= hd_param_store_nslots(w->store); n++)
		of[n] = hd_param_store_hash(w->store, (enum hd_vector)(HD_VEC_PARAMS + n), s->at, s->len);
	return number_of(hd_hash(of, n * sizeof *of));
}

void hd_values_end(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;
	struct hd_values *values = w->values;

	if (!values || !(values->looks || (values->step + 1) % values->every == 0))
		return;
	values->has_state = true;
	for (uint32_t i = 0; i < layout->nsegments; i++) {
		const struct hd_segment *s = &layout->segment[i];
		const uint32_t bucket = hd_layout_bucket_of(layout, s->chunk), device = hd_dist_sharded(w) ?
			bucket % w->spec.ndevices : w->parts->part->owner[s->chunk];
		if (updates(w, bucket))
			values->state[i] = (struct hd_mark){ digest_state(w, s), (uint16_t)device, 0 };
	}
}
