/* The local pool as a way to call: instances of the owner's own loop. */
#include "functions/invoker.h"

static enum hd_err call(void *self, uint64_t name, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	return hd_fn_instances_call(self, name, event, len, deadline_ns, diag);
}

static void on_event(void *self, const struct hd_loop_event *event) { hd_fn_instances_event(self, event); }
static int64_t tick(void *self, int64_t now_ns) { return hd_fn_instances_tick(self, now_ns); }
static bool take(void *self, struct hd_fn_called *called) { return hd_fn_instances_take(self, called); }

const struct hd_fn_invoker_ops hd_fn_pool_ops = { "pool", call, on_event, tick, take };
