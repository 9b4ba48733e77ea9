#include "data/blob.h"

#include <inttypes.h>
#include <string.h>

#include "base/philox.h"
#include "data/range_head.h"
#include "data/served.h"

enum { BACKOFF_MS = 100, BACKOFF_CAP_MS = 10000, TOGETHER = 256 };

bool hd_blob_is_url(const char *text)
{
	struct hd_url url;
	enum hd_err err = hd_url_parse(text, &url, NULL);

	return err || url.scheme != HD_URL_NONE;
}

enum hd_err hd_blob_open(struct hd_blob **store, const char *name, const struct hd_blob_rules *rules,
	struct hd_diag *diag)
{
	static const struct hd_blob_rules defaults = { 0 };

	if (strlen(name) >= HD_BLOB_NAME)
		return hd_fail(diag, HD_E_INVAL, "%.100s... is longer than %d bytes", name, HD_BLOB_NAME - 1);
	return (hd_blob_is_url(name) ? hd_blob_http_open : hd_blob_file_open)(store, name,
		rules ? rules : &defaults, diag);
}

void hd_blob_close(struct hd_blob *store)
{
	if (store)
		store->ops->close(store);
}

enum hd_err hd_blob_read(struct hd_blob *store, const struct hd_range *range, uint32_t nranges,
	const struct hd_ranges_knobs *knobs, struct hd_diag *diag)
{
	struct hd_request request[TOGETHER];
	uint32_t i = 0, n;
	uint64_t done = 0;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < nranges; k++)
		if (range[k].offset > store->size_bytes || range[k].len > store->size_bytes - range[k].offset)
			return hd_fail(diag, HD_E_INPUT,
				"%s has %" PRIu64 " bytes, %zu are wanted from byte %"
				PRIu64 " on: it was cut off, or its index is of another file", store->name,
				store->size_bytes, range[k].len, range[k].offset);
	while (!err && (n = hd_ranges_plan(range, nranges, knobs, &i, &done, request, TOGETHER))) {
		err = store->ops->read(store, request, n, knobs->depth, diag);
		for (uint32_t k = 0; k < n; k++) {
			store->bytes += request[k].len;
			store->wasted += hd_ranges_waste(&request[k]);
		}
		store->requests += n;
	}
	return err;
}

bool hd_blob_read_here(struct hd_blob *store, const struct hd_range *range, uint32_t nranges)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < nranges; k++) {
		if (range[k].offset > store->size_bytes || range[k].len > store->size_bytes - range[k].offset)
			return false;             /* hd_blob_read() says what is wrong */
		bytes += range[k].len;
	}
	if (!store->ops->read_here || bytes > HD_BLOB_HERE || !store->ops->read_here(store, range, nranges))
		return false;
	store->bytes += bytes;
	store->requests += nranges;
	return true;
}

void hd_blob_served(struct hd_blob *store, int64_t ns)
{
	if (store->served)
		hd_served_add(store->served, store->group, ns);
}

struct hd_blob_count hd_blob_count(const struct hd_blob *s)
{
	return (struct hd_blob_count){ s->requests, s->bytes, s->wasted, s->retries };
}

struct hd_ranges_knobs hd_blob_knobs(const struct hd_blob *store)
{
	return hd_blob_is_url(store->name) ? (struct hd_ranges_knobs){ 16, 4 << 20, 64 << 10 } :
		(struct hd_ranges_knobs){ 8, 256 << 10, 64 << 10 };
}

int64_t hd_blob_backoff_ms(uint64_t offset, uint32_t k)
{
	const uint32_t counter[4] = { (uint32_t)offset, (uint32_t)(offset >> 32), k, 0 };
	const struct hd_philox draw = hd_philox(counter, hd_philox_key(0, HD_RNG_NOISE));
	int64_t ms = (int64_t)BACKOFF_MS << (k - 1);

	ms = ms / 2 + (int64_t)((uint64_t)ms * draw.word[0] >> 32);
	return ms < BACKOFF_CAP_MS ? ms : BACKOFF_CAP_MS;
}
