/* invoker.h -- what makes calls of functions for an owner: a local pool, or a service over HTTP.
 *
 * 1. No slot blocks. A call that was begun ends once: take() says how.
 * 2. Events of the loop with tags from the invoker's on are its own.
 *
 * Ownership: self is the maker's, and outlives its use. Threads: the loop's. */
#ifndef HD_FUNCTIONS_INVOKER_H
#define HD_FUNCTIONS_INVOKER_H

#include "functions/instances.h"

/* Slots of a way to call. */
struct hd_fn_invoker_ops {
	const char *name;
	/* HD_E_AGAIN: no slot is free; the call counts as throttled */
	enum hd_err (*call)(void *self, uint64_t call, const char *event, size_t len, int64_t deadline_ns,
		struct hd_diag *diag);
	void (*event)(void *self, const struct hd_loop_event *event);
	/* when it wants to be called again at the latest */
	int64_t (*tick)(void *self, int64_t now_ns);
	bool (*take)(void *self, struct hd_fn_called *called);
};

/* One way, ready. */
struct hd_fn_invoker { const struct hd_fn_invoker_ops *ops; void *self; };

/* self: struct hd_fn_instances */
extern const struct hd_fn_invoker_ops hd_fn_pool_ops;

#endif
