/* names.h -- what the world calls our tensors: one row of rules per model family.
 *
 * Files of weights come with public names (Hugging Face, torchvision), and go out with
 * them. Our parameters bear the public name and storage wherever they can, so a row
 * holds differences only; a model without a row has none. Importers, exporters and
 * model.weights read it; nothing else knows a foreign name.
 *
 * 1. A pattern is literal but for '*', any run of at least one character, and '{i}', a run
 *    of digits; what the wildcards of one side stand for fills those of the other, in order.
 * 2. A prefix may stand before any name of theirs and means nothing.
 * 3. Of the rules that match a name the first counts; a name that none matches is the same
 *    on both sides. Rules marked `old` are read, never written.
 * 4. `ignored` tensors of theirs hold nothing that is learned (masks, positions).
 * 5. `tied`: their second name for one of our tensors. It may be in a file beside the first
 *    (then with equal bytes) or alone; it is written only when asked for, and where the
 *    model has the tensor `with` (NULL: always): a head that is not there is tied to nothing.
 * 6. `surplus` tensors of theirs are of heads that a model may lack: where it has no tensor of the name
 *    they are read over, and the reader of weights says so.
 * 7. `counter`: their count of updates beside a tensor of running statistics: "X" of ours
 *    with suffix `of` has one named by `theirs`; read over, written from the run.
 * 8. A rule with `stack`: ours is several tensors of theirs, one behind the other along extent 0. Wildcard
 *    number `stack` of theirs, counted from 1, counts them and is none of ours.
 * 9. A rule with `memory` has the name that the library gives a tensor in memory, where its files have
 *    another: adapters are named so. It stands before the rule of files, and is `old` to these.
 *
 * Pure. */
#ifndef HD_GRAPH_NAMES_H
#define HD_GRAPH_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/ir.h"

struct hd_name_rule {
	const char *ours, *theirs;        /* patterns */
	bool turned;                      /* a matrix that they store transposed */
	bool old;
	uint8_t stack;
	bool memory;
};
struct hd_name_tie { const char *theirs, *ours, *with; };
struct hd_name_counter { const char *of, *theirs; };      /* suffixes */

enum { HD_NAME_PREFIXES = 4, HD_NAME_RULES = 24, HD_NAME_IGNORED = 8, HD_NAME_TIES = 4,
	HD_NAME_SURPLUS = 6 };

struct hd_family {
	const char *model;                /* row of hd_models, and name of its graph */
	const char *prefix[HD_NAME_PREFIXES];     /* lists end with NULL */
	struct hd_name_rule rule[HD_NAME_RULES];
	const char *ignored[HD_NAME_IGNORED];
	struct hd_name_tie tied[HD_NAME_TIES];
	struct hd_name_counter counter;   /* of NULL: none */
	const char *surplus[HD_NAME_SURPLUS];
};
extern const struct hd_family hd_families[];      /* ends with model == NULL */

/* That of a graph's name; one without differences where no row has the name. */
const struct hd_family *hd_family_of(const char *model);

bool hd_name_is_surplus(const struct hd_family *family, const char *theirs);
bool hd_name_matches(const char *pattern, const char *name);

enum hd_name_kind {
	HD_NAME_OURS,                     /* `ours` holds our name of it */
	HD_NAME_TIED,                     /* the same, of a second name */
	HD_NAME_NOTHING,                  /* to be read over */
};
/* `second`: the name that is tied; a model that has a tensor of that name is not tied, and it is that
 * tensor. */
struct hd_ours { enum hd_name_kind kind; bool turned; const char *second; char name[HD_MAX_NAME];
	bool stacked; uint32_t part; };   /* rule 8: which of its tensors */
/* False: our name of it would be longer than names are. */
bool hd_name_from_theirs(const struct hd_family *family, const char *theirs, struct hd_ours *ours);

/* A second name of the family, which a model that is not tied has as its own: prefixes are not before it. */
bool hd_name_is_second(const struct hd_family *family, const char *theirs);

struct hd_theirs { bool turned, stacked; char name[HD_MAX_NAME]; };
bool hd_name_to_theirs(const struct hd_family *family, const char *ours, struct hd_theirs *theirs);
/* Rule 9; of a tensor that no such rule matches the same. */
bool hd_name_in_memory(const struct hd_family *family, const char *ours, struct hd_theirs *theirs);
/* Rule 8: that of one of the tensors. */
bool hd_name_part_to_theirs(const struct hd_family *family, const char *ours, uint32_t part,
	struct hd_theirs *theirs);

#endif
