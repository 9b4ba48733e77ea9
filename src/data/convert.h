/* convert.h -- a set's samples written as another kind, one by one, in the order of their ids.
 *
 * `heddle data convert`.
 *
 * 1. What is written reads back to the same numbers, bit by bit, as the same sample of the kind.
 * 2. Samples are as the files have them: data.augment is not applied.
 * 3. npy: a folder with x.npy and y.npy; records: a record file; tokens: a token file, of a set whose samples
 * are
 *    a row of tokens cut up, each label the next one. What a kind cannot hold is refused before it is
 * written.
 * 4. The result appears under its name when it is whole, or not at all; nothing is overwritten. NAME.tmp is
 * locked
 *    meanwhile, and what a killed one left of it is taken over.
 * 5. A request to stop (sys/signal.h) ends it between two samples. Memory: a sample, and what the set takes.
 * */
#ifndef HD_DATA_CONVERT_H
#define HD_DATA_CONVERT_H

#include "data/dataset.h"

struct hd_convert { const char *to, *out; uint32_t split; };      /* `to`: a kind of rule 3 */

/* out: the name that it has, without slashes at its end. */
struct hd_convert_report { uint64_t samples, bytes; char out[HD_PATH_CAP]; };

HD_MUST_USE enum hd_err hd_convert(const struct hd_convert *how, const struct hd_dataset *set,
	struct hd_fs *fs,
	struct hd_convert_report *report, struct hd_diag *diag);

#endif
