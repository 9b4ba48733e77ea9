#include "data/image_view.h"

#include <assert.h>

#include "base/alloc.h"
#include "data/reader_int.h"
#include "data/resample.h"

enum { SIDE = 4096 };                             /* of a model's input, and of data.size */

enum hd_err hd_image_view_make(struct hd_image_view *view, const struct hd_data_spec *spec, struct hd_diag
	*diag)
{
	const int64_t *dim = spec->dim;

	if (spec->rank != 3 || (dim[0] != 1 && dim[0] != 3) || dim[1] > SIDE || dim[2] > SIDE)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind %s gives images [1,height,width] or [3,height,width] of at most %d "
				"pixels a "
			"side, the model takes %s: change model.args", spec->kind, SIDE,
			hd_dims_text(spec->rank, dim).at);
	*view = (struct hd_image_view){ (uint32_t)dim[0], (uint32_t)dim[1], (uint32_t)dim[2], 0, { 0 } };
	const uint32_t least = view->height > view->width ? view->height : view->width;
	if (spec->size && spec->size < least)
		return hd_fail(diag, HD_E_INVAL,
			"data.size is %u, the model takes %u x %u pixels: it cannot be below the larger of "
				"them",
			spec->size, view->height, view->width);
	if (spec->size && spec->stretch)
		return hd_fail(diag, HD_E_INVAL,
			"data.fit: stretch brings both sides to the model's: leave data.size "
			"out");
	view->size = spec->stretch ? 0 : spec->size ? spec->size : least;
	for (int i = 0; i < 256; i++)
		view->scaled[i] = (float)i / 255.0f;
	return HD_OK;
}

/* Half of what is left over, rounded to even, as Python rounds. */
static uint32_t middle(uint32_t whole, uint32_t part)
{
	const uint32_t half = (whole - part) / 2;

	return half + ((whole - part) % 2 && half % 2);
}

static struct hd_resample window_of(const struct hd_image_view *view, const struct hd_image *image, bool
	whole)
{
	struct hd_resample to = { view->width, view->height, 0, 0, view->height, view->width };
	const uint64_t w = image->width, h = image->height, size = view->size;

	if (!size || whole)
		return to;
	to.width = (uint32_t)(w <= h ? size : size * w / h);
	to.height = (uint32_t)(w <= h ? size * h / w : size);
	to.top = middle(to.height, view->height);
	to.left = middle(to.width, view->width);
	return to;
}

enum hd_err hd_image_view_fits(const struct hd_image_view *view, const struct hd_image *image,
	const char *name, struct hd_diag *diag)
{
	const uint64_t w = image->width, h = image->height, longer = w > h ? w : h, shorter = w > h ? h : w;

	return view->size * longer / shorter <= INT32_MAX ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"%s has %u x %u pixels: with %u on the shorter side the longer one would have %llu: leave it "
		"out, cut it, or set data.fit stretch", name, image->width, image->height, view->size,
		(unsigned long long)(view->size * longer / shorter));
}

static enum hd_err bring_to_size(const struct hd_image_view *view, const struct hd_image *image,
	const uint8_t *pixel, const struct hd_augment_draw *part, uint8_t *out, struct hd_diag *diag)
{
	struct hd_augment_part of = { 0, 0, image->height, image->width };

	if (part)
		hd_augment_part(part, image->height, image->width, &of);
	const size_t stride = (size_t)image->width * view->channels;
	const struct hd_pixels in = { pixel + of.top * stride + (size_t)of.left * view->channels, stride,
		of.width,
		of.height, view->channels };
	const struct hd_resample to = window_of(view, image, part != NULL);
	void *room = hd_alloc(hd_resample_bytes(&in, &to));

	if (!room)
		return hd_fail(diag, HD_E_NOMEM, "no memory to resize an image of %u x %u pixels",
			image->width,
			image->height);
	hd_resample(&in, &to, room, out);
	hd_free(room);
	return HD_OK;
}

enum hd_err hd_image_view_pixels(const struct hd_image_view *view, const uint8_t *bytes, size_t len,
	const char *name, const struct hd_augment_draw *part, uint8_t *pixel, struct hd_diag *diag)
{
	struct hd_image image;
	enum hd_err err = hd_image_look(bytes, len, name, &image, diag);
	err = err ? err : hd_image_view_fits(view, &image, name, diag);
	uint8_t *all = err ? NULL : hd_alloc(hd_image_bytes(&image));

	if (err)
		return err;
	if (!all)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %u x %u pixels of %s", image.width,
			image.height,
			name);
	err = hd_image_decode(bytes, len, name, &image, view->channels, all, diag);
	if (!err)
		err = bring_to_size(view, &image, all, part, pixel, diag);
	hd_free(all);
	return err;
}

void hd_image_view_numbers(const struct hd_image_view *view, const uint8_t *pixel, float *x)
{
	const size_t n = (size_t)view->height * view->width;

	for (uint32_t c = 0; c < view->channels; c++)
		for (size_t i = 0; i < n; i++)
			*x++ = view->scaled[pixel[i * view->channels + c]];
}

enum hd_err hd_image_view_read(const struct hd_image_view *view, const uint8_t *bytes, size_t len,
	const char *name, const struct hd_augment_draw *part, float *x, struct hd_diag *diag)
{
	uint8_t *pixel = hd_alloc(hd_image_view_bytes(view));

	if (!pixel)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the pixels of %s", name);
	enum hd_err err = hd_image_view_pixels(view, bytes, len, name, part, pixel, diag);
	if (!err)
		hd_image_view_numbers(view, pixel, x);
	hd_free(pixel);
	return err;
}
