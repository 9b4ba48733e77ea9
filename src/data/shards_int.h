/* shards_int.h -- sets whose samples are read from shards by ranges: what webdataset and records share.
 *
 * 1. Opening reads each shard once, hashes it and makes its index, or takes the one that data.cache keeps.
 *    The set's hash is that of the shards' hashes, in order.
 * 2. A sample is one range of one shard; its CRC is compared at each read: HD_E_INTEGRITY.
 * 3. Reads of a call are in flight together, over all shards, within the knobs (ranges.h); they lie in
 *    memory that was taken at the opening. No bit depends on any of it.
 *    What is in this machine's memory the caller reads by itself first: that is no request in flight.
 *    Calls at once share the depth: one begins, in the order in which they came, where
 *    it fits beside the others, or is alone.
 *    A depth that others ask for (keep_depth) stands in place of the tuner's, whose samples rest meanwhile.
 * 4. Shards of elsewhere are copied to data.cache where it has room, else read where they are. */
#ifndef HD_DATA_SHARDS_INT_H
#define HD_DATA_SHARDS_INT_H

#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "data/blob.h"
#include "data/reader_int.h"
#include "data/served.h"
#include "data/shard_index.h"
#include "data/tune.h"

enum { HD_SHARDS_TOGETHER = 64,           /* samples of a call */
       HD_SHARDS_ROOMS_LEAST = 8, HD_SHARDS_ROOMS = 16,  /* calls at once that have memory */
       HD_SHARDS_CREW = 16,               /* threads that read shards for calls */
       HD_SHARDS_SAID = 64 };             /* decisions that nothing took yet; of more the newest are lost */

struct hd_shard { struct hd_blob *blob; struct hd_shard_index index; uint64_t first; };

/* Samples of one shard in a call. */
struct hd_shard_job { const struct hd_shard *shard; const struct hd_range *range; uint32_t nranges, depth;
	enum hd_err err; struct hd_diag diag; };

struct hd_shard_room { struct hd_memory memory; bool taken; };

struct hd_shard_set {
	struct hd_reader reader;
	struct hd_shard *shard; uint32_t nshards;
	uint64_t most_bytes;              /* of a sample */
	/* the bytes of a sample into its fields */
	enum hd_err (*decode)(const struct hd_shard_set *set, const struct hd_shard_sample *sample,
		const uint8_t *bytes, const struct hd_ask *ask, const char *name, struct hd_diag *diag);
	uint32_t classes;
	int64_t bound;                    /* of integers of "x"; 0: none */
	/* the rest is under the lock */
	struct hd_lock lock;
	struct hd_cond change;
	struct hd_shard_room room[HD_SHARDS_ROOMS]; uint32_t nrooms;
	uint32_t in_flight;               /* samples of calls that have a room */
	uint64_t ntickets, nserved;       /* calls that came, and that got a room */
	struct hd_shard_job *job[HD_SHARDS_CREW * 4]; uint32_t njobs;
	struct hd_thread crew[HD_SHARDS_CREW]; uint32_t ncrew;
	bool locked, closed;
	struct hd_ranges_knobs knobs;
	/* the tuner, and the sample that it gets next; what steps have waited so far */
	struct hd_tune tune;
	bool tunes, waited;               /* it does once steps wait in two samples, one after the other */
	int64_t since_ns, waited_before_ns;
	uint64_t sample_bytes; uint32_t sample_requests;
	_Atomic int64_t waited_ns;
	uint32_t kept_depth;              /* that others ask for; 0: none */
	char said[HD_SHARDS_SAID][HD_READING_TEXT]; uint32_t first_said, nsaid;
	char awaits[HD_READING_TEXT];     /* "": nothing new */
	int64_t awaits_ns;                /* when it was said last; 0: never */
	void (*heard)(void *user, const char *text); void *heard_user;
	_Atomic uint64_t looks;           /* of all its shards; without the lock */
	uint64_t delivered;               /* bytes of samples, in all */
	/* of the window at hand; under the lock but for `served` */
	struct hd_served served;
	struct hd_served_seen seen;
	uint64_t window_delivered;
	int64_t window_waited_ns;
};

_Static_assert((int)HD_TUNE_TEXT <= (int)HD_READING_TEXT, "a decision is a line");

/* What makes the index of a shard out of its bytes, piece by piece. */
struct hd_shard_maker {
	void *self;
	enum hd_err (*feed)(void *self, const uint8_t *bytes, size_t len, struct hd_diag *diag);
	enum hd_err (*finish)(void *self, struct hd_diag *diag);
};

/* Grows in the arena. */
struct hd_shard_list { struct hd_arena *arena; struct hd_shard_sample *sample; uint64_t n, cap; };
HD_MUST_USE enum hd_err hd_shard_list_add(struct hd_shard_list *list, const struct hd_shard_sample *sample,
	struct hd_diag *diag);

/* Opens the shards of spec->path with `make`, which sets up a maker for one (in `state`, whose size is
 * given),
 * to fill `list`. Then fields are the caller's to add. */
struct hd_shard_kind { const char *what; size_t state_bytes;
	void (*make)(void *state, const char *name, const struct hd_data_spec *spec,
		struct hd_shard_list *list,
		struct hd_shard_maker *maker); };
HD_MUST_USE enum hd_err hd_shards_open(struct hd_shard_set *set, const struct hd_data_spec *spec,
	const struct hd_shard_kind *kind, struct hd_diag *diag);
/* Memory of calls, splits, the hash: once fields and decode are there. */
HD_MUST_USE enum hd_err hd_shards_ready(struct hd_shard_set *set, const struct hd_data_spec *spec,
	struct hd_diag *diag);
enum hd_err hd_shards_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag);
void hd_shards_destroy(struct hd_dataset *set);
/* Where reading by samples begins. */
struct hd_ranges_knobs hd_shards_knobs(const struct hd_shard_set *set);

/* shards_reading.c: what others learn of it, and ask for. */
extern const struct hd_reading_ops hd_shards_reading;
void hd_shards_say(void *set, const char *text);         /* of hd_tune; under the lock */
void hd_shards_waits(void *set, const char *text);       /* of hd_blob; not under it */

#endif
