#include "protocol/simulation_worker.h"

/* A step that goes on after a loss: how far ranks are is a number that its worker drew, and has to be what
 * everybody hears; what they compute is computed to its end. */

enum { MOST_NEXT = 90 };

/* The same for the same arguments; of few it says no. */
bool sim_goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost)
{
	struct sim_world *s = self;
	uint64_t mixed = s->seed;

	for (uint32_t r = 0; r < view->nranks; r++) {
		mixed = (mixed ^ next[r]) * UINT64_C(0x9e3779b97f4a7c15);
		const uint32_t slot = sim_slot(s, view->rank[r].worker);
		/* one that never heard of its first view is none of its members */
		const struct hd_view *its = slot < SIM_PROCS && s->proc[slot].m ?
			hd_member_view(s->proc[slot].m) : NULL;
		if (lost[r] && its && its->epoch && s->proc[slot].epoch == s->store.epoch)
			sim_bad(s, "failover", "rank %u is lost, and worker %u is there", r,
				view->rank[r].worker);
	}
	for (uint32_t i = 0; i < view->shape.nstages * s->nvns; i++)
		if (arrived[i] > 7)
			sim_bad(s, "failover", "%u has arrived", arrived[i]);
	return mixed >> 60;
}

/* Likewise. */
bool sim_fewer(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *fewer)
{
	const struct sim_world *s = self;
	const struct hd_view_shape *shape = ask->shape;
	uint32_t i = ask->width < 3 ? (ask->width + 1) % SIM_FEWER : 1;
	const uint64_t mixed = (s->seed ^ ask->lost ^ (uint64_t)ask->n << 32 ^ (uint64_t)ask->width << 40 ^
		(uint64_t)shape->schedule << 48) * UINT64_C(0x9e3779b97f4a7c15);

	if (ask->width < 1 || ask->width >= shape->width || ask->lost >> shape->nstages || !ask->n ||
		!s->shapes[SIM_SHAPES + i].shape.nstages)
		sim_bad(self, "fewer", "%u ranks of %u, stages %llx are lost", ask->width, shape->width,
			(unsigned long long)ask->lost);
	for (uint32_t k = 0; k < ask->nrefused; k++)      /* then the smaller one, or none */
		if (ask->refused[k] == hd_view_shape_key(&s->shapes[SIM_SHAPES + i].shape)) {
			if (i == SIM_FEWER - 1)
				return false;
			i = i ? i - 1 : SIM_FEWER - 1;
			k = UINT32_MAX;
		}
	*fewer = s->shapes[SIM_SHAPES + i].shape;
	return mixed >> 61;
}

/* Until faults stop: then every change comes to its end. */
bool sim_is_unfit(const struct sim_world *s, uint32_t slot, const struct hd_view *view)
{
	const uint64_t mixed = (s->seed ^ hd_view_shape_key(&view->shape) ^
		(uint64_t)s->proc[slot].id << 20) * UINT64_C(0x9e3779b97f4a7c15);

	return s->seed & HD_SIM_REFUSING && s->now < s->quiet_ns && mixed >> 63;
}

static void check_view(struct sim_world *s, const struct hd_msg *msg, const struct hd_view_shape *shape,
	const uint32_t *member, uint32_t n)
{
	const uint64_t key = shape->nstages ? hd_view_shape_key(shape) : 0;

	for (uint32_t i = 0; i < s->store.nunfit; i++)
		for (uint32_t m = 0; m < n; m++)
			if (s->store.unfit[i].shape == key && s->store.unfit[i].worker == member[m])
				sim_bad(s, "refused", "%s with worker %u in %u stages, which it refused",
					hd_msg_name(msg->kind), member[m], shape->nstages);
}

void sim_check_refused(struct sim_world *s, const struct hd_msg *msg)
{
	struct hd_view_shape shape, old;
	const struct hd_msg_prepare *p = &msg->prepare;
	const struct hd_msg_view *v = &msg->view;

	if (msg->kind == HD_MSG_PREPARE) {
		hd_view_shape_read(&shape, p->width, p->schedule, p->way, p->place, p->nplace, p->first,
			p->nfirst);
		hd_view_shape_read(&old, p->old_width, p->old_schedule, p->old_way, p->old_place,
			p->nold_place, p->old_first, p->nold_first);
		if (!hd_view_same_shape(&shape, &old))
			check_view(s, msg, &shape, p->member, p->nmember);
		s->result->narrowed += s->seed & HD_SIM_LATE && shape.width < old.width &&
			shape.width < s->shape.width;
	} else if (msg->kind == HD_MSG_VIEW && v->fewer && !v->nhave && !v->ndoubled) {
		hd_view_shape_read(&shape, v->width, v->schedule, v->way, v->place, v->nplace, v->first,
			v->nfirst);
		check_view(s, msg, &shape, v->member, v->nmember);
	}
}

/* The running pass ends between two instructions. */
void sim_stop(struct sim_world *s, uint32_t slot, uint64_t step)
{
	s->proc[slot].run++;
	sim_after(s, slot, TASK_STOPPED, sim_ms(s, 0, sim_rnd(s, 8) ? 40 : 1500), false,
		(struct sim_world_event){ .step = step });
}

void sim_stand(struct sim_world *s, uint32_t slot, uint64_t step)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);
	uint8_t arrived[SIM_STAGES * SIM_VNS];

	p->stood = 0;
	p->stood_step = step;
	for (uint32_t r = 0; r < view->nranks; r++)
		if (view->rank[r].worker == p->id) {
			p->stood_rank[p->stood] = r;
			p->stood_next[p->stood++] = (uint32_t)sim_rnd(s, MOST_NEXT);
		}
	if (sim_rnd(s, 16) == 0 || p->stuck)
		p->stood = 0;                     /* its engine refuses, or began nothing */
	for (uint32_t i = 0; i < SIM_STAGES * SIM_VNS; i++)
		arrived[i] = (uint8_t)sim_rnd(s, 8);
	const struct hd_member_stood stood = { .nranks = p->stood, .rank = p->stood_rank,
		.next = p->stood_next, .arrived = arrived, .narrived = view->shape.nstages * s->nvns };
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_STOPPED, .step = step,
		.stood = &stood });
}

void sim_go_on(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];

	if (!hd_view_stages(a->view, p->id))
		p->stood = 0;                     /* in a step before, with a rank */
	else if (!p->stood || p->stood_step != a->step)
		sim_bad(s, "failover", "worker %u goes on with step %llu, and does not stand in it", p->id,
			(unsigned long long)a->step);
	for (uint32_t i = 0; i < p->stood; i++)
		if (a->next[p->stood_rank[i]] != p->stood_next[i])
			sim_bad(s, "failover", "rank %u of worker %u goes on at %u, and stands at %u",
				p->stood_rank[i], p->id, a->next[p->stood_rank[i]], p->stood_next[i]);
	for (uint32_t r = 0; r < a->view->nranks; r++)
		if (!hd_view_has(a->view, a->view->rank[r].worker))
			sim_bad(s, "failover", "rank %u of worker %u is not doubled", r,
				a->view->rank[r].worker);
	p->run++;
	p->stood = 0;
	p->stuck = s->now < s->quiet_ns && sim_rnd(s, 8) == 0;
	s->result->stuck += p->stuck;
	if (p->stuck)
		sim_after(s, slot, TASK_STUCK, sim_ms(s, 0, 20), false,
			(struct sim_world_event){ .step = a->step });
}
