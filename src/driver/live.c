#include "driver/live.h"

static const struct hd_fields_row worker_rows[] = {
#define X(...) HD_FIELDS_ROW(struct hd_live_worker, __VA_ARGS__)
	HD_LIVE_WORKER_FIELDS(X)
#undef X
};
const struct hd_fields hd_live_worker_fields = HD_FIELDS("worker", "a worker of a run", struct hd_live_worker,
	worker_rows);

static const struct hd_fields_row rows[] = {
#define X(...) HD_FIELDS_ROW(struct hd_live, __VA_ARGS__)
	HD_LIVE_FIELDS(X)
#undef X
};
const struct hd_fields hd_live_fields = HD_FIELDS("run", "where a run stands", struct hd_live, rows);

void hd_live_put(const struct hd_live *live, unsigned where, struct hd_json_writer *w)
{
	struct hd_live shown = *live;

	shown.workers = (struct hd_fields_list){ .at = live->worker, .n = live->nworkers };
	hd_fields_put(&hd_live_fields, where, &shown, w);
}

enum hd_err hd_live_read(const struct hd_json *answer, struct hd_live *live, struct hd_diag *diag)
{
	const struct hd_json *workers = NULL;

	*live = (struct hd_live){ .goes_on = true, .exit = -1 };
	enum hd_err err = hd_fields_read(&hd_live_fields, HD_LIVE_SOCKET, answer, live, diag);
	if (!err)
		err = hd_json_get(answer, "workers", HD_JSON_ARRAY, &workers, diag);
	for (size_t i = 0; !err && i < hd_json_count(workers) && live->nworkers < HD_LIVE_WORKERS; i++) {
		struct hd_live_worker *w = &live->worker[live->nworkers++];
		err = hd_fields_read(&hd_live_worker_fields, HD_LIVE_SOCKET, hd_json_item(workers, i), w,
			diag);
		w->worker = w->id;
	}
	return err;
}
