#include "timeline/timeline.h"

static const struct { const char *text, *colour; } class_row[HD_TL_CLASS_COUNT] = {
#define X(id, number, text, colour) [HD_TL_##id] = { text, colour },
	HD_TL_CLASSES(X)
#undef X
};

const char *hd_tl_class_text(uint8_t class)
{
	return class < HD_TL_CLASS_COUNT ? class_row[class].text : NULL;
}

const char *hd_tl_class_colour(uint8_t class)
{
	return class < HD_TL_CLASS_COUNT ? class_row[class].colour : NULL;
}
