/* int.h -- what the walk over the lists leaves for the execution of them. Private to this folder. */
#ifndef HD_PIPELINE_CHECK_INT_H
#define HD_PIPELINE_CHECK_INT_H

#include "pipeline/schedule_check.h"

#define HD_NOWHERE UINT32_MAX             /* a place that there is none of */

enum hd_seen {
	HD_DID_F = 1, HD_DID_B = 2, HD_DID_I = 4, HD_DID_W = 8, HD_KEPT_INPUT = 16, HD_ON_HOST = 32,
	HD_SENT_A = 64, HD_GOT_A = 128, HD_SENT_G = 256, HD_GOT_G = 512, HD_POSTED_A = 1024,
	HD_POSTED_G = 2048, HD_LOADED = 4096,
};

/* Of a (stage, virtual node). GOT_A, GOT_G: its output of F, its input gradient have arrived where they
 * are used. */
struct hd_at { uint32_t at; uint16_t rank; };
/* nth: place in its channel */
struct hd_done { uint16_t seen; struct hd_at f, b, w; uint32_t nth_a, nth_g; uint16_t slot_a, slot_g; };

struct hd_lists {
	const struct hd_schedule *s;
	struct hd_done *done;                     /* [stages * vns] */
	bool transfers, loads;                    /* transfers, LD stand in the lists */
	const char *view;                         /* said before findings: of which lists; NULL: of all */
	const struct hd_schedule_job *job;        /* or NULL */
	const struct hd_stage_rule *rule;         /* [stages] settled */
	uint32_t *holders;                        /* [stages] ranks with a forward of it */
	enum hd_update_mode update;                    /* of the schedule as it was given, */
	uint32_t step_vns;                        /* and its m */
	struct hd_report *report;
	struct hd_arena *arena;
};

static inline struct hd_done *hd_done_of(const struct hd_lists *l, uint32_t stage,
	uint32_t vn) { return &l->done[(size_t)stage * l->s->nvns + vn]; }
static inline bool hd_is_transfer(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG ||
	op == HD_INS_RA || op == HD_INS_RG; }

__attribute__((format(printf, 5, 6)))
void hd_lists_say(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at, const char *fmt,
	...);
/* Two instructions: the second is named after the sentence. `other_at` UINT32_MAX: there is none. */
__attribute__((format(printf, 7, 8)))
void hd_lists_say_both(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at, uint32_t other,
	uint32_t other_at, const char *fmt, ...);
/* The sentence names them itself: they are drawn only. */
__attribute__((format(printf, 7, 8)))
void hd_lists_say_drawn(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at,
	uint32_t other, uint32_t other_at, const char *fmt, ...);
__attribute__((format(printf, 3, 4)))
void hd_lists_say_all(const struct hd_lists *l, const char *rule, const char *fmt, ...);

/* K5, K28: what a job says of layers and of pipelines. */
HD_MUST_USE enum hd_err hd_lists_layers(const struct hd_lists *l, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_lists_pipelines(const struct hd_lists *l, struct hd_diag *diag);
/* K26; without findings `out` has a rank for each group. */
HD_MUST_USE enum hd_err hd_lists_tensor_groups(const struct hd_lists *l, struct hd_schedule *out,
	struct hd_diag *diag);
/* K31 - K35, of lists that are accepted without their shadows. */
HD_MUST_USE enum hd_err hd_lists_shadows(const struct hd_lists *l, struct hd_diag *diag);
/* K22, of lists without findings. */
HD_MUST_USE enum hd_err hd_lists_memory(const struct hd_lists *l, const struct hd_schedule_rules *rules,
	struct hd_diag *diag);
/* K30: what each rank holds after a period; the prologue takes `first` steps. */
HD_MUST_USE enum hd_err hd_lists_period(const struct hd_lists *l, uint32_t first, struct hd_diag *diag);
/* K11: buffers that receives name. Of lists whose transfers have no findings. */
HD_MUST_USE enum hd_err hd_lists_slots(const struct hd_lists *l, struct hd_diag *diag);
/* K12 - K21: versions, gradients, updates. Of lists without findings. */
HD_MUST_USE enum hd_err hd_lists_versions(const struct hd_lists *l, struct hd_diag *diag);
/* K7 and K8: executes lists that have no findings. */
HD_MUST_USE enum hd_err hd_lists_run(const struct hd_lists *l, const struct hd_schedule_rules *rules,
	struct hd_diag *diag);

#endif
