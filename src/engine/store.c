#include "engine/store.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "sys/memory.h"

struct hd_param_store {
	struct hd_device *device;
	struct hd_store_shape shape;
	uint64_t version;
	uint64_t elems[HD_VECS];
	float *flat[HD_VECS];             /* NULL: no elements */
	int spill;                        /* the file; -1: none */
	uint64_t spill_at[HD_VECS];       /* where a vector begins in it */
};

/* Only what a step reads has frozen parameters beside the trained ones. */
uint64_t hd_vector_elems(const struct hd_layout *layout, struct hd_store_shape shape, enum hd_vector vector)
{
	const uint64_t elems[] = {
		[HD_VEC_PARAMS] = layout->held_elems,
		[HD_VEC_SLOT0] = shape.nslots > 0 ? layout->elems : 0,
		[HD_VEC_SLOT1] = shape.nslots > 1 ? layout->elems : 0,
		[HD_VEC_SLOT2] = shape.nslots > 2 ? layout->elems : 0,
		[HD_VEC_BUFFERS] = layout->buffer_elems,
		[HD_VEC_EARLIER] = shape.nearlier > 0 ? layout->held_elems : 0,
	};

	assert(vector < HD_VECS && shape.nslots <= HD_MAX_SLOTS && shape.nearlier <= HD_MAX_DELAY);
	if (vector > HD_VEC_EARLIER)
		return vector - HD_VEC_EARLIER < shape.nearlier ? layout->elems : 0;
	return elems[vector];
}

enum hd_err hd_param_store_create(struct hd_param_store **store, const struct hd_layout *layout,
	struct hd_store_shape shape, struct hd_device *device, struct hd_diag *diag)
{
	struct hd_param_store *s = hd_alloc(sizeof *s);
	enum hd_err err = HD_OK;

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the table of parameters");
	*s = (struct hd_param_store){ .device = device, .shape = shape, .spill = -1 };
	for (int v = 0; v < HD_VECS && !err; v++) {
		s->elems[v] = hd_vector_elems(layout, shape, (enum hd_vector)v);
		if (s->elems[v])
			err = device->ops->take(device, s->elems[v] * sizeof(float), (void **)&s->flat[v],
				diag);
	}
	if (err)
		hd_param_store_destroy(s);
	else
		*store = s;
	return err;
}

void hd_param_store_destroy(struct hd_param_store *s)
{
	if (!s)
		return;
	hd_memory_id_close(s->spill);
	for (int v = 0; v < HD_VECS; v++)
		s->device->ops->give(s->device, s->flat[v], s->elems[v] * sizeof(float));
	hd_free(s);
}

uint32_t hd_param_store_nslots(const struct hd_param_store *s) { return s->shape.nslots; }

uint64_t hd_param_store_elems(const struct hd_param_store *s, enum hd_vector vector)
{
	assert(vector < HD_VECS);
	return s->elems[vector];
}

bool hd_param_store_has(const struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len)
{
	return vector < HD_VECS && at <= s->elems[vector] && len <= s->elems[vector] - at;
}

float *hd_param_store_at(const struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len)
{
	assert(hd_param_store_has(s, vector, at, len));
	(void)len;
	return s->flat[vector] ? s->flat[vector] + at : NULL;
}

void hd_param_store_read(const struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len,
	void *bytes)
{
	if (len)
		memcpy(bytes, hd_param_store_at(s, vector, at, len), len * sizeof(float));
}

void hd_param_store_write(struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len,
	const void *bytes)
{
	if (len)
		memcpy(hd_param_store_at(s, vector, at, len), bytes, len * sizeof(float));
}

struct hd_hash hd_param_store_hash(const struct hd_param_store *s, enum hd_vector vector, uint64_t at,
	uint64_t len)
{
	return hd_hash(hd_param_store_at(s, vector, at, len), len * sizeof(float));
}

void hd_param_store_drop(struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len)
{
	if (len)
		hd_memory_drop(hd_param_store_at(s, vector, at, len), len * sizeof(float));
}

/* Vectors lie in the file as they lie to a huge page in memory. */
enum hd_err hd_param_store_spills(struct hd_param_store *s, const char *folder, struct hd_diag *diag)
{
	const uint64_t huge = UINT64_C(2) << 20;
	uint64_t end = 0;

	for (int v = 0; v < HD_VECS; v++) {
		s->spill_at[v] = end + (uintptr_t)s->flat[v] % huge;
		end += hd_round_up(s->elems[v] * sizeof(float), huge) + huge;
	}
	return hd_memory_spill_open(folder, end, &s->spill, diag);
}

static uint64_t spilled_at(const struct hd_param_store *s, enum hd_vector vector, uint64_t at)
{
	return s->spill_at[vector] + at * sizeof(float);
}

enum hd_err hd_param_store_spill(struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len,
	struct hd_diag *diag)
{
	assert(s->spill >= 0);
	return len ? hd_memory_spill(s->spill, hd_param_store_at(s, vector, at, len), len * sizeof(float),
		spilled_at(s, vector, at), diag) : HD_OK;
}

enum hd_err hd_param_store_unspill(struct hd_param_store *s, enum hd_vector vector, uint64_t at, uint64_t len,
	struct hd_diag *diag)
{
	assert(s->spill >= 0);
	return len ? hd_memory_unspill(s->spill, hd_param_store_at(s, vector, at, len), len * sizeof(float),
		spilled_at(s, vector, at), diag) : HD_OK;
}

uint64_t hd_param_store_version(const struct hd_param_store *s) { return s->version; }
void hd_param_store_set_version(struct hd_param_store *s, uint64_t version) { s->version = version; }

void hd_param_store_bind(const struct hd_param_store *s, struct hd_bind *bind)
{
	bind->params = s->flat[HD_VEC_PARAMS];
	bind->buffers = s->flat[HD_VEC_BUFFERS];
}

void hd_param_store_bind_step(const struct hd_param_store *s, struct hd_bind *bind)
{
	bind->params = s->flat[s->shape.nearlier ? HD_VEC_EARLIER : HD_VEC_PARAMS];
	bind->buffers = s->flat[HD_VEC_BUFFERS];
}

void hd_param_store_bind_back(const struct hd_param_store *s, uint32_t back, struct hd_bind *bind)
{
	assert(back <= s->shape.nearlier);
	bind->params = s->flat[back ? hd_vec_earlier(s->shape.nearlier - back) : HD_VEC_PARAMS];
	bind->buffers = s->flat[HD_VEC_BUFFERS];
}

static bool reads_earlier(const struct hd_param_store *s) { return s->shape.nearlier > 1; }

void hd_param_store_bind_after(const struct hd_param_store *s, struct hd_bind *bind)
{
	bind->params = s->flat[reads_earlier(s) ? hd_vec_earlier(1) : HD_VEC_PARAMS];
	bind->buffers = s->flat[HD_VEC_BUFFERS];
}

static void copy_range(struct hd_param_store *s, enum hd_vector to, enum hd_vector from, uint64_t at,
	uint64_t len)
{
	if (len)
		memcpy(hd_param_store_at(s, to, at, len), hd_param_store_at(s, from, at, len),
			len * sizeof(float));
}

void hd_param_store_age(struct hd_param_store *s, uint64_t at, uint64_t len, uint32_t delay)
{
	assert(delay && delay <= s->shape.nearlier);
	for (uint32_t j = 0; j < delay; j++)
		copy_range(s, hd_vec_earlier(j), j + 1 < delay ? hd_vec_earlier(j + 1) : HD_VEC_PARAMS, at,
			len);
}

void hd_param_store_follow(struct hd_param_store *s, uint64_t at, uint64_t len)
{
	if (s->shape.nearlier)
		copy_range(s, HD_VEC_EARLIER, HD_VEC_PARAMS, at, len);
}

void hd_param_store_near(struct hd_param_store *s, uint64_t at, uint64_t len)
{
	if (reads_earlier(s))
		copy_range(s, hd_vec_earlier(1), HD_VEC_PARAMS, at, len);
}

void hd_param_store_span(struct hd_param_store *s, uint64_t at, uint64_t len, struct hd_update *update)
{
	update->param = hd_param_store_at(s, HD_VEC_PARAMS, at, len);
	for (uint32_t k = 0; k < HD_MAX_SLOTS; k++)
		update->slot[k] = k < s->shape.nslots ? hd_param_store_at(s, hd_vec_slot(k), at, len) : NULL;
	update->len = len;
}

void hd_param_store_swap(struct hd_param_store *s, enum hd_vector slot)
{
	float *a = s->flat[HD_VEC_PARAMS], *b = s->flat[slot];

	for (uint64_t i = 0; i < s->elems[slot]; i++) {
		const float kept = a[i];
		a[i] = b[i];
		b[i] = kept;
	}
}

bool hd_param_store_find(const struct hd_param_store *s, const void *address, enum hd_vector *vector,
	uint64_t *at)
{
	const uintptr_t a = (uintptr_t)address;

	for (int v = 0; v < HD_VECS; v++) {
		const uintptr_t from = (uintptr_t)s->flat[v];
		if (!from || a < from || a >= from + s->elems[v] * sizeof(float) ||
			(a - from) % sizeof(float))
			continue;
		*vector = (enum hd_vector)v;
		*at = (a - from) / sizeof(float);
		return true;
	}
	return false;
}
