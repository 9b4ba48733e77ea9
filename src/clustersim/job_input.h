/* job_input.h -- what jobs mean for the cluster that they are given to: their file by its first line, types
 * and accounts that both sides name, work by the speed of a type, and what a stream of jobs asks of all
 * devices.
 *
 * 1. A job that names a type of the cluster, whatever the case, runs on that alone, and did its work there:
 *    of a list without rates, time becomes work by the speed of that type. Of a type that the cluster has not
 *    it runs on any; such jobs are counted.
 * 2. A job whose user is no entity counts for its account, where that is one.
 * 3. The load of a stream is what each type needs to get its part of the mix through in its own time. Above
 *    1 the queue of an endless stream grows without end, unless jobs get the types that suit them.
 *
 * Pure. */
#ifndef HD_CLUSTERSIM_JOB_INPUT_H
#define HD_CLUSTERSIM_JOB_INPUT_H

#include "clustersim/job_generate.h"
#include "clustersim/sched_sim.h"

/* The line HD_JOB_RECORDED: such a list; a brace: sacct --json; tabs in the first line: a trace; bars: an
 * accounting of Slurm; else a table with commas. */
HD_MUST_USE enum hd_err hd_job_list_read(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len, const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag);

/* Rule 1; `speed`: [ntypes], NULL where work is known by rates. How many jobs named a type that is not there;
 * *unknown is the first of these types. Names of types are borrowed. */
uint64_t hd_job_list_bind_types(struct hd_job_list *list, const struct hd_sched_type *type,
	const double *speed, uint32_t ntypes, const char **unknown);

/* Jobs whose record says that they asked for no type in particular may run on any; what they were is known
 * by then (bind_types). */
void hd_job_list_free_types(struct hd_job_list *list);

/* Rule 2. */
void hd_job_list_bind_accounts(struct hd_job_list *list, const struct hd_sched_entity *entities,
	uint32_t nentities);

/* Rule 3, of 2000 jobs that such a generator makes; `all` are the rates that it draws from, `rates` those of
 * the types. 0: it makes none, or all at once. */
double hd_job_generator_load(const struct hd_job_generator_setting *how, const struct hd_rates *all,
	const struct hd_rates *rates, const struct hd_sched_type *type, uint32_t ntypes);

/* "START,RESIZE,MOVE,PREEMPT" in seconds. HD_E_INVAL; says nothing. */
HD_MUST_USE enum hd_err hd_switch_costs_parse(struct hd_switch_costs *costs, const char *text);

/* speedup[k]: steps/s of k devices over those of one, 1 to `max`: "1:1.9:2.7", not falling, or NULL: what an
 * even split of `nvns` virtual nodes gives. HD_E_INVAL: the text is not that; says nothing. */
HD_MUST_USE enum hd_err hd_speedup_parse(double *speedup, const char *text, uint64_t max, uint64_t nvns);

/* Sets sizes, virtual nodes (0: as many as `max`) and speedup (as above; of the arena), if 1 <= min <= max.
 * What else `elastic` holds stays. HD_E_INVAL, and then nothing is set. */
HD_MUST_USE enum hd_err hd_elastic_make(struct hd_sched_elastic *elastic, uint64_t min, uint64_t max,
	uint64_t nvns, const char *speedup, struct hd_arena *arena, struct hd_diag *diag);

/* Entities in the order in which they are named. `weight`: a text, NULL is 1; `kind`: "fifo", else fairness.
 * HD_E_INVAL: no weight, one more than HD_SCHED_ENTITIES, or a name that is there; the list stays. The list
 * is of the arena, names are the caller's. */
struct hd_entity_list { const struct hd_sched_entity *at; uint32_t n; };
HD_MUST_USE enum hd_err hd_entity_add(struct hd_entity_list *list, const char *name, const char *weight,
	const char *kind, struct hd_arena *arena, struct hd_diag *diag);

#endif
