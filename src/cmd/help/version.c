#include "cmd/help/build.h"

#include "hd_version.h"
#include "base/json_writer.h"

const struct hd_build hd_build = { HD_VERSION, HD_VERSION_GIT, HD_VERSION_PRESET, HD_VERSION_COMPILER,
	HD_VERSION_LIBRARIES, HD_VERSION_ROOMS };

void hd_build_json(struct hd_json_writer *w)
{
	hd_json_put_text(w, "version", hd_build.version);
	hd_json_put_text(w, "git", hd_build.git);
	hd_json_put_text(w, "preset", hd_build.preset);
	hd_json_put_text(w, "compiler", hd_build.compiler);
	hd_json_put_text(w, "libraries", hd_build.libraries);
	hd_json_put_text(w, "rooms", hd_build.rooms);
}

static enum hd_err verb_version(struct hd_cmd *cmd)
{
	struct hd_json_writer w;
	struct hd_text text;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("heddle %s (%s)\nbuild      %s, %s\nlibraries  %s\nrooms      %s\n", hd_build.version,
			hd_build.git, hd_build.preset,
			hd_build.compiler, hd_build.libraries, hd_build.rooms);
		return HD_OK;
	}
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_build_json(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
	return HD_OK;
}

const struct hd_verb hd_verb_version = {
	.name = "version", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "version, build and libraries",
	.opts = HD_OPTS(),
	.run = verb_version, .test = "program_doctor.sh",
};
