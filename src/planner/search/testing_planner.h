/* testing_planner.h -- random models and clusters for the tests of the planner. For tests only. */
#ifndef HD_PLANNER_TESTING_PLANNER_H
#define HD_PLANNER_TESTING_PLANNER_H

#include "pipeline/schedule_check.h"
#include "planner/planner.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { DEVICES_MOST = 12 };

struct model { struct hd_profile profile; struct hd_cuts cuts; struct hd_cut_sums sums; };

static inline void settle(struct model *m)
{
	hd_sums_of(&m->sums, &m->cuts, &m->profile, (struct hd_cuts_how){ 0 });
}

/* n nodes in a chain, some with a second branch around the next. 3840 is divided by each number of copies
 * up to 6. */
static inline void make_model(struct model *m, struct hd_dice d, uint32_t n, int64_t scale, bool branches)
{
	struct hd_profile *p = &m->profile;

	*p = hd_chain_profile(n);
	p->tensor_shards = 4;
	for (uint32_t v = 0; v < n; v++) {
		struct hd_profile_node *node = &p->node[v];
		node->out[0] = scale * (1 + hd_roll(&d, 64)) * 256;
		node->f.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->i.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->w.p50_ns = scale * 1024 * hd_roll(&d, 32);
		node->param = scale * 3840 * (hd_roll(&d, 3) ? hd_roll(&d, 16) : 512);
		node->saved = scale * 8192 * (1 + hd_roll(&d, 64));
		node->act_w = 0.5;
		if (v > 1 && branches && !hd_roll(&d, 3))
			p->edge[p->nedges++] = (struct hd_profile_edge){ v - 2, v, 0 };
	}
	settle(m);
}

struct machines { struct hd_cluster cluster; struct hd_cluster_kind kind[2]; uint32_t of[DEVICES_MOST]; };

static inline void make_machines(struct machines *c, struct hd_dice *d, uint32_t inner, uint32_t outer,
	bool alike, int64_t memory, int64_t scale)
{
	c->kind[0] = (struct hd_cluster_kind){ "a", 1, scale * memory };
	c->kind[1] = (struct hd_cluster_kind){ "b", 0.5, scale * memory };
	c->cluster = (struct hd_cluster){ .kind = c->kind, .nkinds = 2, .nlevels = 2, .device_kind = c->of,
		.ndevices = inner * outer };
	c->cluster.level[0] = (struct hd_cluster_level){ "in", inner, 1e10,
		scale * (int64_t)hd_roll(d, 1000) * 1000 };
	c->cluster.level[1] = (struct hd_cluster_level){ "out", outer, hd_roll(d, 2) ? 1e9 : 1e8,
		scale * (int64_t)hd_roll(d, 20000) * 1000 };
	for (uint32_t x = 0; x < c->cluster.ndevices; x++)
		c->of[x] = alike ? 0 : hd_roll(d, 2);
}

#endif
