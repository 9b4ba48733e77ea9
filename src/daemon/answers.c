#include "daemon/answers.h"

#include "run/curve.h"

/* a macro cannot define another: the struct of each list of rows */
#define JOB(...) HD_FIELDS_ROW(struct hd_answer_job, __VA_ARGS__)
#define RATE(...) HD_FIELDS_ROW(struct hd_answer_rate, __VA_ARGS__)
#define JOB_WHOLE(...) HD_FIELDS_ROW(struct hd_answer_job_whole, __VA_ARGS__)
#define JOBS(...) HD_FIELDS_ROW(struct hd_answer_jobs, __VA_ARGS__)
#define SUBMITTED(...) HD_FIELDS_ROW(struct hd_answer_submitted, __VA_ARGS__)
#define JOB_TYPE(...) HD_FIELDS_ROW(struct hd_answer_job_type, __VA_ARGS__)
#define WHY(...) HD_FIELDS_ROW(struct hd_answer_why, __VA_ARGS__)
#define STATE(...) HD_FIELDS_ROW(struct hd_answer_state, __VA_ARGS__)
#define PRIORITY(...) HD_FIELDS_ROW(struct hd_answer_priority, __VA_ARGS__)
#define SCALE(...) HD_FIELDS_ROW(struct hd_answer_scale, __VA_ARGS__)
#define WAITING(...) HD_FIELDS_ROW(struct hd_answer_waiting, __VA_ARGS__)
#define WAITINGS(...) HD_FIELDS_ROW(struct hd_answer_waitings, __VA_ARGS__)
#define SAMPLE(...) HD_FIELDS_ROW(struct hd_answer_sample, __VA_ARGS__)
#define HISTORY(...) HD_FIELDS_ROW(struct hd_answer_history, __VA_ARGS__)
#define POINT(...) HD_FIELDS_ROW(struct hd_answer_point, __VA_ARGS__)
#define CURVE(...) HD_FIELDS_ROW(struct hd_answer_curve, __VA_ARGS__)
#define SPENT(...) HD_FIELDS_ROW(struct hd_answer_spent, __VA_ARGS__)
#define LEDGER(...) HD_FIELDS_ROW(struct hd_answer_ledger, __VA_ARGS__)
#define TYPE(...) HD_FIELDS_ROW(struct hd_answer_type, __VA_ARGS__)
#define HOST(...) HD_FIELDS_ROW(struct hd_answer_host, __VA_ARGS__)
#define HOSTS(...) HD_FIELDS_ROW(struct hd_answer_hosts, __VA_ARGS__)
#define SWEEP(...) HD_FIELDS_ROW(struct hd_answer_sweep, __VA_ARGS__)
#define SWEEPS(...) HD_FIELDS_ROW(struct hd_answer_sweeps, __VA_ARGS__)
#define WINDOW(...) HD_FIELDS_ROW(struct hd_answer_window, __VA_ARGS__)
#define WINDOWS(...) HD_FIELDS_ROW(struct hd_answer_windows, __VA_ARGS__)
#define LENT(...) HD_FIELDS_ROW(struct hd_answer_lent, __VA_ARGS__)
#define PARTITION(...) HD_FIELDS_ROW(struct hd_answer_partition, __VA_ARGS__)
#define ACCOUNT(...) HD_FIELDS_ROW(struct hd_answer_account, __VA_ARGS__)
#define STATUS(...) HD_FIELDS_ROW(struct hd_answer_status, __VA_ARGS__)
#define POOL(...) HD_FIELDS_ROW(struct hd_answer_pool, __VA_ARGS__)
#define DEVICE(...) HD_FIELDS_ROW(struct hd_answer_device, __VA_ARGS__)
#define POOLS(...) HD_FIELDS_ROW(struct hd_answer_pools, __VA_ARGS__)
#define USABLE(...) HD_FIELDS_ROW(struct hd_answer_usable, __VA_ARGS__)
#define BACKUP(...) HD_FIELDS_ROW(struct hd_answer_backup, __VA_ARGS__)
#define POLICY(...) HD_FIELDS_ROW(struct hd_answer_policy, __VA_ARGS__)
#define BUILT(...) HD_FIELDS_ROW(struct hd_answer_built, __VA_ARGS__)
#define POLICIES(...) HD_FIELDS_ROW(struct hd_answer_policies, __VA_ARGS__)
#define AFFECTED(...) HD_FIELDS_ROW(struct hd_answer_affected, __VA_ARGS__)
#define WHATIF(...) HD_FIELDS_ROW(struct hd_answer_whatif, __VA_ARGS__)
#define EVENT(...) HD_FIELDS_ROW(struct hd_answer_event, __VA_ARGS__)
#define EVENTS(...) HD_FIELDS_ROW(struct hd_answer_events, __VA_ARGS__)
#define QUOTA(...) HD_FIELDS_ROW(struct hd_answer_quota, __VA_ARGS__)
#define ME(...) HD_FIELDS_ROW(struct hd_answer_me, __VA_ARGS__)
#define TOKEN(...) HD_FIELDS_ROW(struct hd_answer_token, __VA_ARGS__)
#define TOKENS(...) HD_FIELDS_ROW(struct hd_answer_tokens, __VA_ARGS__)
#define TOKEN_NEW(...) HD_FIELDS_ROW(struct hd_answer_token_new, __VA_ARGS__)
#define ERROR(...) HD_FIELDS_ROW(struct hd_answer_error, __VA_ARGS__)

static const struct hd_fields_row job_rows[] = { HD_ANSWER_JOB(JOB) };
static const struct hd_fields_row rate_rows[] = { HD_ANSWER_RATE(RATE) };
static const struct hd_fields_row job_whole_rows[] = { HD_ANSWER_JOB_WHOLE(JOB_WHOLE) };
static const struct hd_fields_row jobs_rows[] = { HD_ANSWER_JOBS(JOBS) };
static const struct hd_fields_row submitted_rows[] = { HD_ANSWER_SUBMITTED(SUBMITTED) };
static const struct hd_fields_row job_type_rows[] = { HD_ANSWER_JOB_TYPE(JOB_TYPE) };
static const struct hd_fields_row why_rows[] = { HD_ANSWER_WHY(WHY) };
static const struct hd_fields_row state_rows[] = { HD_ANSWER_STATE(STATE) };
static const struct hd_fields_row priority_rows[] = { HD_ANSWER_PRIORITY(PRIORITY) };
static const struct hd_fields_row scale_rows[] = { HD_ANSWER_SCALE(SCALE) };
static const struct hd_fields_row waiting_rows[] = { HD_ANSWER_WAITING(WAITING) };
static const struct hd_fields_row waitings_rows[] = { HD_ANSWER_WAITINGS(WAITINGS) };
static const struct hd_fields_row sample_rows[] = { HD_ANSWER_SAMPLE(SAMPLE) };
static const struct hd_fields_row history_rows[] = { HD_ANSWER_HISTORY(HISTORY) };
static const struct hd_fields_row point_rows[] = { HD_ANSWER_POINT(POINT) };
static const struct hd_fields_row curve_rows[] = { HD_ANSWER_CURVE(CURVE) };
static const struct hd_fields_row spent_rows[] = { HD_ANSWER_SPENT(SPENT) };
static const struct hd_fields_row ledger_rows[] = { HD_ANSWER_LEDGER(LEDGER) };
static const struct hd_fields_row type_rows[] = { HD_ANSWER_TYPE(TYPE) };
static const struct hd_fields_row host_rows[] = { HD_ANSWER_HOST(HOST) };
static const struct hd_fields_row hosts_rows[] = { HD_ANSWER_HOSTS(HOSTS) };
static const struct hd_fields_row sweep_rows[] = { HD_ANSWER_SWEEP(SWEEP) };
static const struct hd_fields_row sweeps_rows[] = { HD_ANSWER_SWEEPS(SWEEPS) };
static const struct hd_fields_row window_rows[] = { HD_ANSWER_WINDOW(WINDOW) };
static const struct hd_fields_row windows_rows[] = { HD_ANSWER_WINDOWS(WINDOWS) };
static const struct hd_fields_row lent_rows[] = { HD_ANSWER_LENT(LENT) };
static const struct hd_fields_row partition_rows[] = { HD_ANSWER_PARTITION(PARTITION) };
static const struct hd_fields_row account_rows[] = { HD_ANSWER_ACCOUNT(ACCOUNT) };
static const struct hd_fields_row status_rows[] = { HD_ANSWER_STATUS(STATUS) };
static const struct hd_fields_row pool_rows[] = { HD_ANSWER_POOL(POOL) };
static const struct hd_fields_row device_rows[] = { HD_ANSWER_DEVICE(DEVICE) };
static const struct hd_fields_row pools_rows[] = { HD_ANSWER_POOLS(POOLS) };
static const struct hd_fields_row usable_rows[] = { HD_ANSWER_USABLE(USABLE) };
static const struct hd_fields_row backup_rows[] = { HD_ANSWER_BACKUP(BACKUP) };
static const struct hd_fields_row policy_rows[] = { HD_ANSWER_POLICY(POLICY) };
static const struct hd_fields_row built_rows[] = { HD_ANSWER_BUILT(BUILT) };
static const struct hd_fields_row policies_rows[] = { HD_ANSWER_POLICIES(POLICIES) };
static const struct hd_fields_row affected_rows[] = { HD_ANSWER_AFFECTED(AFFECTED) };
static const struct hd_fields_row whatif_rows[] = { HD_ANSWER_WHATIF(WHATIF) };
static const struct hd_fields_row event_rows[] = { HD_ANSWER_EVENT(EVENT) };
static const struct hd_fields_row events_rows[] = { HD_ANSWER_EVENTS(EVENTS) };
static const struct hd_fields_row quota_rows[] = { HD_ANSWER_QUOTA(QUOTA) };
static const struct hd_fields_row me_rows[] = { HD_ANSWER_ME(ME) };
static const struct hd_fields_row token_rows[] = { HD_ANSWER_TOKEN(TOKEN) };
static const struct hd_fields_row tokens_rows[] = { HD_ANSWER_TOKENS(TOKENS) };
static const struct hd_fields_row token_new_rows[] = { HD_ANSWER_TOKEN_NEW(TOKEN_NEW) };
static const struct hd_fields_row error_rows[] = { HD_ANSWER_ERROR(ERROR) };

#define X(name, rows, about) \
	const struct hd_fields hd_answer_##name##_fields = HD_FIELDS(#name, about, struct hd_answer_##name, \
		name##_rows);
HD_ANSWERS(X)
#undef X
const struct hd_fields hd_answer_nothing_fields = { .name = "nothing", .about = "no members" };

void hd_answer_points_fill(void *user, struct hd_json_writer *w)
{
	const struct hd_answer_points *points = user;

	for (uint32_t i = 0; i < points->n; i++) {
		const struct hd_loss_point *p = &points->at[i];
		hd_fields_put_object(&hd_answer_point_fields, 0, &(struct hd_answer_point){ .step = p->step,
			.t = p->t, .loss = p->loss, .lr = p->lr, .workers = p->workers,
			.step_ms = p->step_ms }, NULL, w);
	}
}
