/* window.h -- a time in which devices are kept from jobs: a drain, maintenance, a reservation.
 *
 * The live scheduler (dispatch.h) obeys them; the store and the log write them as JSON members.
 *
 * 1. In force from `from_s` until `until_s`, which may be INFINITY: until it is taken back.
 * 2. Devices of a DRAIN and of MAINTENANCE are given to no job; those of RESERVED to jobs of its user alone,
 *    or of its account and those within it. Where several hold for a device, one that is not RESERVED goes
 *    before.
 * 3. A name is of letters, digits and -._ and of one window at a time.
 *
 * Times are seconds of the scheduler's clock. Plain values, pure. */
#ifndef HD_SCHEDULER_WINDOW_H
#define HD_SCHEDULER_WINDOW_H

#include "base/json.h"
#include "base/json_writer.h"

enum { HD_WINDOW_NAME = 64, HD_WINDOW_REASON = 128, HD_WINDOW_DEVICES = 256 };

/*        id            name            what a device of it is while no job has it */
#define HD_WINDOWS(X)                                          \
	X(DRAIN,        "drain",        "drained")             \
	X(MAINTENANCE,  "maintenance",  "maintenance")         \
	X(RESERVED,     "reserved",     "reserved")

enum hd_window_kind {
#define X(id, name, state) HD_WINDOW_##id,
	HD_WINDOWS(X)
#undef X
	HD_WINDOW_NKINDS
};

struct hd_kept {
	char name[HD_WINDOW_NAME + 1], reason[HD_WINDOW_REASON];
	enum hd_window_kind kind;
	/* of RESERVED: one of them; else "" */
	char user[HD_WINDOW_NAME + 1], account[HD_WINDOW_NAME + 1];
	double from_s, until_s;
	uint32_t ndevices, device[HD_WINDOW_DEVICES];                     /* ascending */
};

const char *hd_window_name(enum hd_window_kind kind);
const char *hd_window_state(enum hd_window_kind kind);
/* HD_E_INVAL with what would be right. */
HD_MUST_USE enum hd_err hd_window_check(const struct hd_kept *window, uint32_t ndevices,
	struct hd_diag *diag);
bool hd_window_has(const struct hd_kept *window, uint32_t device);
/* All but the devices, as members of the object that is open; the same read, HD_E_INPUT. */
void hd_window_put(const struct hd_kept *window, struct hd_json_writer *w);
HD_MUST_USE enum hd_err hd_window_get(const struct hd_json *json, struct hd_kept *window,
	struct hd_diag *diag);

#endif
