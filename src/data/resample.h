/* resample.h -- an image in another size: the bilinear filter of Pillow, which widens with the image that
 * shrinks (antialiasing), bit for bit.
 *
 * Pillow from 3.4 on, `Image.resize((W, H), BILINEAR)`, which is torchvision's Resize of a PIL image: for
 * each output column the weights 1 - |distance| / s, s = max(1, in / out), in f64, divided by their sum,
 * rounded to 22 bits; sums of 8-bit pixels in integers, rounded; columns first, to 8 bits, then rows
 * likewise. (Pillow 13 takes the rows first for some extents: a pixel may differ by 1.)
 *
 * 1. Of the result only a window may be asked for: its pixels are those of the whole.
 * 2. No rounding depends on the machine: f64 operations that IEEE 754 defines, and integers.
 *
 * Ownership: nothing is kept; `room` is for the call. Pure. */
#ifndef HD_DATA_RESAMPLE_H
#define HD_DATA_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Part of an image of interleaved channels: pixel (y, x) begins at at + y * stride + x * channels. */
struct hd_pixels { const uint8_t *at; size_t stride; uint32_t width, height, channels; };

/* The image is to become width x height; the window of it that is wanted begins at (top, left). */
struct hd_resample { uint32_t width, height, top, left, rows, columns; };

/* Of `room`, at most what the call needs. */
size_t hd_resample_bytes(const struct hd_pixels *in, const struct hd_resample *to);
/* out[rows][columns][channels]; `room` is aligned to 8 bytes. */
void hd_resample(const struct hd_pixels *in, const struct hd_resample *to, void *room, uint8_t *out);

#endif
