/* measured.h -- a model of spot/model.h from what a run took: steps by the number of pipelines that did them.
 *
 * 1. step_ms[D - 1] is the mean of the steps that were seen on D pipelines, at least HD_SPOT_SEEN of them. D
 *    without so many: as the nearest D with (ties: the smaller), by the most virtual nodes that a pipeline
 *    has of V, ceil(V / D).
 * 2. `scale`: the model's milliseconds in one of the run's; what was seen is in microseconds.
 *
 * Pure; plain values. */
#ifndef HD_SPOT_MEASURED_H
#define HD_SPOT_MEASURED_H

#include "base/json_writer.h"
#include "spot/model.h"

enum { HD_SPOT_SEEN = 3 };

struct hd_spot_measured { struct { uint64_t n, us; } on[HD_SPOT_PIPELINES]; };        /* of D: on[D - 1] */

void hd_spot_measured_step(struct hd_spot_measured *m, uint32_t pipelines, uint64_t us);
/* Fills npipelines and step_ms of up to `most` pipelines. false: no D was seen often enough. */
bool hd_spot_measured_steps(struct hd_spot_model *model, const struct hd_spot_measured *m, uint32_t most,
	uint32_t nvns, double scale);
/* As hd_spot_model_read() reads it, where it does (hd_spot_model_text). */
void hd_spot_model_put(const struct hd_spot_model *model, struct hd_json_writer *w);
/* The same as text that can be read again, in the arena. HD_E_INPUT: it could not, because a time is longer
 * than a model may have. */
HD_MUST_USE enum hd_err hd_spot_model_text(const struct hd_spot_model *model, struct hd_arena *arena,
	struct hd_text *text, struct hd_diag *diag);

#endif
