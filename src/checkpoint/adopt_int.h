/* adopt_int.h -- what the ways to adopt a model share (adopt.c, peft_in.c); of this room. */
#ifndef HD_CHECKPOINT_ADOPT_INT_H
#define HD_CHECKPOINT_ADOPT_INT_H

#include "checkpoint/adopt.h"
#include "checkpoint/weights.h"

/* One call. */
struct hd_adopt_desk {
	struct hd_adopted *out;
	struct hd_fs *fs;
	const char *source, *folder;      /* of the model's weights; where to write */
	struct hd_arena *arena;
	struct hd_diag *diag;
};
/* The model's name and arguments. */
struct hd_adopt_given { struct hd_model_arg arg[HD_MAX_ARGS]; uint32_t n; const char *model; };

enum hd_err hd_adopt_begin(const struct hd_adopt_desk *d);
/* What config.json beside the source says, then what the user says. */
enum hd_err hd_adopt_settle(const struct hd_adopt_desk *d, struct hd_adopt_given *given, const char *model,
	const struct hd_model_arg *arg, uint32_t nargs);
enum hd_err hd_adopt_build(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	struct hd_graph *graph);
/* Which heads of the weights the model has not: a line of the notes, if any. */
void hd_adopt_say_surplus(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	const struct hd_weights *weights);
/* `more`: lines of the table model, "" or ending in a line feed. */
enum hd_err hd_adopt_write_job(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	const char *more);

#endif
