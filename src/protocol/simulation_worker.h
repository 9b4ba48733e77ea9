/* simulation_worker.h -- the parts of one simulated worker: its actions (simulation_worker.c), what it
 * computes with (_sums), state on its way (_state), packets (_packets).
 *
 * 1. Time passes in sim_after() alone: what takes time is a task, due later, and comes back to sim_task().
 * 2. Each part calls the member machine through sim_member(), which may come back to any of them. */
#ifndef HD_PROTOCOL_SIMULATION_WORKER_H
#define HD_PROTOCOL_SIMULATION_WORKER_H

#include "protocol/simulation_int.h"

enum sim_task { TASK_WARM_UP, TASK_FINAL, TASK_BROUGHT, TASK_COMPUTED,
	TASK_FOLDED, TASK_FINISH, TASK_BOUNDARY, TASK_PREPARE,
	TASK_LOADED, TASK_FEED, TASK_UPDATE, TASK_SQUARED, TASK_STOPPED,
	TASK_STUCK, TASK_UNFIT, TASK_EARLY };

/* simulation_worker.c */
void sim_after(struct sim_world *s, uint32_t slot, enum sim_task kind, int64_t in_ns, bool serial,
	struct sim_world_event ev);
int64_t sim_ms(struct sim_world *s, uint32_t from, uint32_t to);

/* simulation_sums.c */
bool sim_is_tag(struct sim_world *s, uint64_t tag, uint64_t step);
uint64_t sim_units(const struct hd_vrange *range, uint32_t n);
void sim_final(struct sim_world *s, struct sim_proc *p, uint32_t pass, uint32_t bucket);
void sim_send_roots(struct sim_world *s, uint32_t slot, const struct hd_member_action *a);
void sim_check_sum(struct sim_world *s, const struct sim_proc *p, uint64_t step, uint32_t bucket,
	struct sim_val val);
void sim_fold(struct sim_world *s, uint32_t slot, const struct hd_member_action *a);
void sim_publish(struct sim_world *s, uint32_t slot, const struct hd_member_action *a, enum sim_kind kind);
void sim_send_leaves(struct sim_world *s, uint32_t slot, const struct hd_member_action *a);
/* New parameters before UPDATE: due for what may be, one in two; then one of a bucket. */
void sim_may_early(struct sim_world *s, uint32_t slot);
void sim_new_early(struct sim_world *s, uint32_t slot, uint64_t step, uint32_t bucket);
void sim_update(struct sim_world *s, uint32_t slot, uint64_t step);
void sim_finish(struct sim_world *s, uint32_t slot, uint64_t step);

/* simulation_state.c */
void sim_feed(struct sim_world *s, uint32_t slot, bool boundary);
void sim_send_part(struct sim_world *s, uint32_t slot, const struct hd_member_action *a,
	enum sim_kind kind);
void sim_want_slots(struct sim_world *s, uint32_t slot, uint64_t step, bool all,
	bool read);
void sim_give_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k);
void sim_take_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k);
void sim_saved(struct sim_world *s, uint32_t slot);
void sim_send_state(struct sim_world *s, struct sim_proc *p, uint32_t slot, uint32_t joiner, bool on);
void sim_want(struct sim_world *s, uint32_t slot);
void sim_sync(struct sim_world *s, uint32_t slot, const struct hd_member_action *a);
void sim_snap(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k);
void sim_over(struct sim_world *s, uint32_t slot, const struct sim_packet *k);

/* simulation_failover.c */
void sim_stop(struct sim_world *s, uint32_t slot, uint64_t step);
void sim_stand(struct sim_world *s, uint32_t slot, uint64_t step);
void sim_go_on(struct sim_world *s, uint32_t slot, const struct hd_member_action *a);

/* simulation_packets.c */
void sim_release_waiting(struct sim_world *s, uint32_t slot);

#endif
