/* log.h -- the lines of sched_log.h: the names of the setting's numbers there, and the writer of the
 * lines. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_LOG_H
#define HD_CLUSTERSIM_SCHEDSIM_LOG_H

#include "clustersim/sched_log.h"
#include "clustersim/schedsim/int.h"

enum log_kind { LOG_F64, LOG_U32, LOG_U64, LOG_INT, LOG_BOOL };
/* later: older logs lack it, and it was 0 */
struct log_field { const char *key; enum log_kind kind; size_t at; bool later; };

/* One row a number: written and read by it. */
/* end with key NULL */
extern const struct log_field log_setting_fields[], log_policy_fields[], log_elastic_fields[],
	log_estimate_fields[];

void schedsim_log_setting(const struct sched_sim *sim);
void schedsim_log_job(const struct sched_sim *sim, uint64_t id, const struct hd_listed_job *job);
void schedsim_log_solve(const struct sched_sim *sim, const struct hd_sched_state *state,
	const struct hd_shares *shares);
void schedsim_log_end(const struct sched_sim *sim);

#endif
