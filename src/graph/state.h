/* state.h -- the state table: everything that a step reads besides the job.
 *
 * Law: a fresh process given only the job and the table computes the identical
 * next step. What is not in the table is a pure function (random numbers, data
 * order, learning rate) or does not exist. No state is keyed by virtual node, so
 * moving virtual nodes moves nothing.
 *
 * Checkpoints write the table, digests hash it, joiners receive it, `ckpt diff`
 * compares it. Dropping an entry must break a test.
 *
 * 1. Entries are sorted bytewise by name; names are unique.
 * 2. `key` says what an entry is keyed by and hence with what it moves; `merge`
 *    how contributions of virtual nodes become one value.
 * 3. A tensor that lies in slices (slices.h) is one entry, with its own name and natural order: get(), put()
 *    and the digest know no other. So files and digests do not say how a tensor is stored.
 * 4. Digest: segment = XXH3-128 of its little-endian bytes; tensor = XXH3-128 of
 *    its segments' digests in order; state = XXH3-128 over the entries of
 *    (name, 0, dtype u8, rank u8, dims u64 LE, tensor digest).
 *
 * Ownership: `at` of an entry is borrowed from the owner of the memory (the run);
 * the table itself lies in its arena. */
#ifndef HD_GRAPH_STATE_H
#define HD_GRAPH_STATE_H

#include "base/hash.h"
#include "graph/slices.h"

enum hd_state_key   { HD_KEY_CHUNK, HD_KEY_JOB, HD_KEY_TENSOR };
enum hd_state_merge { HD_MERGE_NONE, HD_MERGE_SUM_F32, HD_MERGE_SUM_F64, HD_MERGE_MOMENT };
enum hd_state_group { HD_STATE_MODEL, HD_STATE_OPTIM, HD_STATE_RUN };   /* which file of a checkpoint */

/* The mean of a parameter (optim.ema) is an entry of its own, the name with a dot and this. */
#define HD_STATE_MEAN "ema"

/* Where slice s lies: at[s]. */
struct hd_state_slices { struct hd_sliced shape; float **at; };

struct hd_state_entry {
	const char *name;
	uint8_t  dtype, rank;
	int64_t  dim[HD_MAX_DIMS];
	uint8_t  key, merge, group;
	bool     bf16;                    /* F32 in memory, every number one of bf16: files hold BF16 */
	uint64_t version;                 /* updates applied */
	void    *at;                      /* NULL with slices */
	const struct hd_state_slices *slices;     /* borrowed; NULL: it lies in one piece; else F32 */
	uint64_t len_bytes;
};

struct hd_state {
	struct hd_arena *arena;
	struct hd_state_entry *entry;
	uint32_t nentries, cap;
};

void hd_state_init(struct hd_state *state, struct hd_arena *arena);
HD_MUST_USE enum hd_err hd_state_add(struct hd_state *state, const struct hd_state_entry *entry,
	struct hd_diag *diag);
struct hd_state_entry *hd_state_find(const struct hd_state *state, const char *name);         /* NULL: none */
/* The entry of the mean of a parameter; NULL: it has none. */
struct hd_state_entry *hd_state_mean(const struct hd_state *state, const struct hd_state_entry *param);

/* Every parameter that has a mean is read, and written, as that from now on; returns how many have. The table
 * is for reading then. */
uint32_t hd_state_use_means(struct hd_state *state);

/* Elements [first, first + n) in natural order. */
void hd_state_get(const struct hd_state_entry *entry, uint64_t first, uint64_t n, void *to);
void hd_state_put(const struct hd_state_entry *entry, uint64_t first, uint64_t n, const void *from);
/* Does it have memory? */
static inline bool hd_state_lies(const struct hd_state_entry *entry) { return entry->at || entry->slices; }

struct hd_hash hd_state_tensor_digest(const struct hd_state_entry *entry);
struct hd_hash hd_state_digest(const struct hd_state *state);
/* The same from tensor digests made elsewhere (in parallel, by segment). */
struct hd_hash hd_state_digest_of(const struct hd_state *state, const struct hd_hash *tensor);

#endif
