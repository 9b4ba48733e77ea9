/* table.h -- the trials of a sweep as rows: JSON, text.
 *
 * Rows are in the order of the trials and say nothing of when or where anything ran: of a method that does
 * not depend on time, equal sweeps have equal bytes.
 *
 * Pure. Rows borrow from the machine and lie in the arena. */
#ifndef HD_SWEEP_TABLE_H
#define HD_SWEEP_TABLE_H

#include "base/fields.h"
#include "sweep/draw.h"
#include "sweep/trials.h"

#define HD_SWEEP_RUNG_FIELDS(X)                                                                             \
	X(int64_t, step, .about = "steps it had")                                                           \
	X(double, metric, .about = "its metric there")

#define HD_SWEEP_KEY_FIELDS(X)                                                                              \
	X(const char *, key, .about = "of the job")                                                         \
	X(const char *, kind, .about = "choice, linear, log, int or log-int")                               \
	X(double, from, .about = "the least value of a range; of a choice 0")                               \
	X(double, to, .about = "the greatest")                                                              \
	X(struct hd_fields_texts, values, .about = "of a choice, in the order of the file")

#define HD_SWEEP_ROW_FIELDS(X)                                                                              \
	X(int64_t, trial, .about = "its number, from 0", .head = "trial", .width = 6)                       \
	X(const char *, state, .about = "waiting, running, paused, stopped (others were better), done or failed", \
		.head = "state", .width = 9)                                                                \
	X(int64_t, steps, .about = "steps that it was computed for", .head = "steps", .width = 8)           \
	X(double, metric, .about = "at the last rung it reported at; nan: none", .head = "metric",          \
		.width = 12, .digits = 6)                                                                   \
	X(struct hd_fields_list, rungs, .of = &hd_sweep_rung_fields, .about = "what it reported, first rung first") \
	X(const char *, digest, .about = "of its state there", .head = "digest", .width = 32)               \
	X(struct hd_fields_texts, set, .about = "what it sets in the job, as -s takes it")                  \
	X(const char *, values, .about = "the same in one text", .head = "values", .width = 30)             \
	X(const char *, why, .about = "why it failed; empty: it did not", .head = "why")

#define HD_SWEEP_TABLE_FIELDS(X)                                                                            \
	X(const char *, name, .about = "the sweep's")                                                       \
	X(const char *, method, .about = "grid, random, sobol, halving or asha")                            \
	X(const char *, metric, .about = "what is compared")                                                \
	X(const char *, goal, .about = "min or max")                                                        \
	X(bool, over, .about = "no trial runs any more")                                                    \
	X(int64_t, best, .negative = true, .about = "the best trial of those that came furthest; -1: none reported") \
	X(int64_t, steps, .about = "of all trials together")                                                \
	X(int64_t, exhaustive, .about = "steps, if each trial ran to the last rung")                        \
	X(struct hd_fields_list, keys, .of = &hd_sweep_key_fields, .may_lack = true, .about = "of the space") \
	X(struct hd_fields_list, trials, .of = &hd_sweep_row_fields, .about = "each, by number")

struct hd_sweep_rung { HD_FIELDS_MEMBERS(HD_SWEEP_RUNG_FIELDS) };
struct hd_sweep_key { HD_FIELDS_MEMBERS(HD_SWEEP_KEY_FIELDS) };
struct hd_sweep_row { HD_FIELDS_MEMBERS(HD_SWEEP_ROW_FIELDS) };
struct hd_sweep_table { HD_FIELDS_MEMBERS(HD_SWEEP_TABLE_FIELDS) };
extern const struct hd_fields hd_sweep_rung_fields, hd_sweep_key_fields, hd_sweep_row_fields,
	hd_sweep_table_fields;

HD_MUST_USE enum hd_err hd_sweep_table_make(struct hd_sweep_table *table, const char *name,
	const struct hd_sweep *sweep, const struct hd_trials *t, struct hd_arena *arena,
		struct hd_diag *diag);
void hd_sweep_table_json(const struct hd_sweep_table *table, struct hd_text *text);      /* a line */
void hd_sweep_table_text(const struct hd_sweep_table *table, struct hd_text *text);

#endif
