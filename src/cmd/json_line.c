#include "cmd/json_line.h"

struct hd_json_writer *hd_json_line_open(struct hd_cmd *cmd, struct hd_json_line *line)
{
	hd_text_init(&line->text, &cmd->arena);
	hd_json_writer_init(&line->writer, &line->text);
	hd_json_open_object(&line->writer, NULL);
	return &line->writer;
}

void hd_json_line_print(struct hd_json_line *line)
{
	hd_json_close(&line->writer);
	printf("%s\n", line->text.at);
}
