/* show.h -- what simulated clusters look like: lines, JSON members, the page. For the verbs simulate and
 * compare. */
#ifndef HD_CMD_SCHED_SHOW_H
#define HD_CMD_SCHED_SHOW_H

#include "base/json_writer.h"
#include "clustersim/sched_report.h"
#include "cmd/sched/input.h"

/* "90.0 s", "2.50 h", "-"; returns out */
const char *hd_sched_seconds(char out[40], double s);
/* null where it is none */
void hd_sched_put_time(struct hd_json_writer *w, const char *key, double s);
void hd_sched_put_summary(struct hd_json_writer *w, const struct hd_sched_sim_setting *set, const char
	*policy,
	const struct hd_sched_sim_result *r);

/* On stderr, of the rows as-it-was and slurm: options that they do not follow, jobs that never start, and
 * what partitions did. */
void hd_sched_tell_queue(const struct hd_cmd *cmd, const struct hd_sched_sim_setting *setting,
	const struct hd_sched_sim_result *r);

struct hd_sched_page { struct hd_sched_report_run run[HD_REPORT_RUNS]; uint32_t nruns; };

/* With --html: the run at hand will be on the page; what became of it; the file. */
HD_MUST_USE enum hd_err hd_sched_watch(struct hd_cmd *cmd, struct hd_sched_page *page,
	struct hd_sched_sim_setting *set, const char *policy);
void hd_sched_note(const struct hd_sched_page *page, const struct hd_sched_sim_result *result);
HD_MUST_USE enum hd_err hd_sched_write_page(struct hd_cmd *cmd, const struct hd_sched_sim_setting *set,
	const struct hd_sched_page *page);

#endif
