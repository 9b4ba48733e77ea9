/* Any bytes are refused as a flight file, or give events and names that lie inside them. */
#include <stdlib.h>
#include <string.h>

#include "trace/flight.h"

enum { CHUNK = 64 };

static void read_ring(const struct hd_flight_view *view, uint32_t i)
{
	struct hd_ring_reader reader;
	uint8_t slot[CHUNK][HD_SLOT_BYTES];
	uint32_t n;

	hd_ring_read_begin(&reader, view->ring[i].memory, view->ring[i].nslots);
	while ((n = hd_ring_read(&reader, slot, CHUNK)))
		for (uint32_t k = 0; k < n; k++) {
			struct hd_event event;
			const char *text = hd_event_get(slot[k], &event) ? hd_names_text(view->names,
				view->names_used, event.name) : "?";
			if (strcmp(text, "?") != 0 && strlen(text) >= view->names_used)
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A real file begins with 4096 bytes of which few count: the input is the 160 bytes of fields,
 * as many as there are of the directory, and what follows the header, so that seeds stay small. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	enum { FIELDS = 160, DIRECTORY = 1024, RINGS = 2, ENTRIES = RINGS * 48 };
	static struct hd_flight_view view;
	uint8_t *file;
	size_t body = len > FIELDS + ENTRIES ? len - FIELDS - ENTRIES : 0;

	if (len < FIELDS + ENTRIES)
		return 0;
	file = calloc(1, HD_FLIGHT_HEADER_BYTES + body);
	if (!file)
		return 0;
	memcpy(file, bytes, FIELDS);
	memcpy(file + DIRECTORY, bytes + FIELDS, ENTRIES);
	memcpy(file + HD_FLIGHT_HEADER_BYTES, bytes + FIELDS + ENTRIES, body);
	if (hd_flight_parse(file, HD_FLIGHT_HEADER_BYTES + body, "input", &view, NULL) == HD_OK)
		for (uint32_t i = 0; i < view.info.nrings; i++)
			read_ring(&view, i);
	free(file);
	return 0;
}
