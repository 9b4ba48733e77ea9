#include "data/images_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "sys/file_sim.h"
#include "data/augment.h"
#include "tests/check.h"
#include "tests/data_files.h"

enum { SIDE = 8, PIXELS = 3 * SIDE * SIDE };

static struct hd_fs_sim sim;

static struct hd_data_spec spec_of(const char *path)
{
	return (struct hd_data_spec){ .kind = "images", .path = path, .train = 1, .dim = { 3, SIDE, SIDE },
		.rank = 3,
		.classes = 10 };
}

/* One of the small files of tests/data/images under another name. */
static void put_image(struct hd_fs *fs, const char *path, const char *name)
{
	const char *source = getenv("SOURCE_DIR");
	uint8_t bytes[2000];
	char from[500];

	snprintf(from, sizeof from, "%s/tests/data/images/%s", source ? source : ".", name);
	FILE *file = fopen(from, "rb");
	CHECK(file, "%s", from);
	const size_t len = fread(bytes, 1, sizeof bytes, file);
	assert_true(len > 0 && len < sizeof bytes);
	fclose(file);
	put_file(fs, path, bytes, len);
}

/* data/{ant,Bee,cow}: "Bee" before "ant", as its bytes are. */
static struct hd_fs *make_folder(void)
{
	struct hd_fs *fs = &sim.fs;

	hd_fs_sim_init(&sim);
	put_folder(fs, "data/ant/more");
	put_folder(fs, "data/Bee");
	put_folder(fs, "data/cow");
	put_image(fs, "data/ant/z.JPG", "s420.jpg");
	put_image(fs, "data/ant/more/a.png", "rgb.png");
	put_image(fs, "data/Bee/1.jpeg", "grey.jpg");
	put_image(fs, "data/cow/1.png", "rgba.png");
	put_image(fs, "data/cow/2.png", "adam7.png");
	put_text(fs, "data/cow/notes.txt", "no image");
	put_text(fs, "data/cow/._2.png", "left by another system");
	return fs;
}

static struct hd_dataset *open_ok(struct hd_fs *fs, const struct hd_data_spec *spec)
{
	struct hd_dataset *set = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_dataset_open(&set, spec, fs, &diag) == HD_OK, "%s", diag.text);
	return set;
}

static int32_t label_at(const struct hd_dataset *set, uint32_t split, uint64_t i, float x[PIXELS])
{
	int32_t y = -1;
	void *out[HD_MAX_FIELDS] = { x, &y };
	struct hd_diag diag = { "" };

	CHECK(hd_dataset_read(set, split, i, HD_NO_EPOCH, out, &diag) == HD_OK, "%s", diag.text);
	return y;
}

static void a_folder_is_its_folders_by_the_bytes_of_their_names(void **state)
{
	static const int32_t labels[] = { 0, 1, 1, 2, 2 };
	static const char *const paths[] = { "Bee/1.jpeg", "ant/z.JPG", "ant/more/a.png", "cow/1.png",
		"cow/2.png" };
	struct hd_fs *fs = make_folder();
	const struct hd_data_spec spec = spec_of("data");
	struct hd_dataset *set = open_ok(fs, &spec);
	float x[PIXELS], again[PIXELS];

	(void)state;
	assert_int_equal(set->count, 5);
	CHECK(!strcmp(set->about, "5 images of 3 classes as [3,8,8], data"), "%s", set->about);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(label_at(set, 0, i, x), labels[i]);
		assert_string_equal(((struct hd_image_set *)set)->item[i].path, paths[i]);
		assert_int_equal(label_at(set, 0, i, again), labels[i]);      /* kept by now */
		assert_memory_equal(x, again, sizeof x);
		for (int k = 0; k < PIXELS; k++)
			assert_true(x[k] >= 0 && x[k] <= 1);
	}
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

static void names_of_classes_in_the_job_give_their_order(void **state)
{
	static const char *const names[] = { "cow", "ant", "Bee" };
	struct hd_fs *fs = make_folder();
	struct hd_data_spec spec = spec_of("data");
	float x[PIXELS];

	(void)state;
	spec.class = names;
	spec.nclasses = 3;
	struct hd_dataset *set = open_ok(fs, &spec);
	assert_int_equal(label_at(set, 0, 0, x), 0);
	assert_string_equal(((struct hd_image_set *)set)->item[0].path, "cow/1.png");
	assert_int_equal(label_at(set, 0, 4, x), 2);
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

static void folders_of_splits_are_those_splits(void **state)
{
	struct hd_fs *fs = make_folder();
	const struct hd_data_spec spec = spec_of("all");
	float x[PIXELS];

	(void)state;
	put_folder(fs, "all/train/a");
	put_folder(fs, "all/train/b");
	put_folder(fs, "all/val/b");
	put_folder(fs, "all/test/a");
	put_image(fs, "all/train/a/1.png", "rgb.png");
	put_image(fs, "all/train/b/1.png", "rgb.png");
	put_image(fs, "all/train/b/2.png", "rgba.png");
	put_image(fs, "all/val/b/1.jpg", "grey.jpg");
	put_image(fs, "all/test/a/1.jpg", "grey.jpg");
	put_image(fs, "all/test/a/2.jpg", "s420.jpg");
	struct hd_dataset *set = open_ok(fs, &spec);
	assert_int_equal(set->split[hd_dataset_split(set, "train")].count, 3);
	assert_int_equal(set->split[hd_dataset_split(set, "valid")].count, 1);
	assert_int_equal(set->split[hd_dataset_split(set, "test")].count, 2);
	assert_int_equal(label_at(set, hd_dataset_split(set, "valid"), 0, x), 1);
	assert_int_equal(label_at(set, hd_dataset_split(set, "test"), 1, x), 0);
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

static void a_list_is_its_rows_whatever_its_form(void **state)
{
	static const char csv[] = "label,file\nwasp,ant/z.JPG\nbee,cow/1.png\nwasp,cow/2.png\n",
		jsonl[] = "{\"file\": \"ant/z.JPG\", \"label\": \"wasp\"}\n\n{\"label\": \"bee\", \"file\": "
			"\"cow/1.png\"}\n"
		"{\"file\": \"cow/2.png\", \"label\": \"wasp\"}", numbers[] =
			"file,label\nant/z.JPG,7\ncow/1.png,0\n";
	struct hd_fs *fs = make_folder();
	struct hd_data_spec spec = spec_of("data/list.csv");
	float x[PIXELS], y[PIXELS];

	(void)state;
	put_text(fs, "data/list.csv", csv);
	put_text(fs, "data/list.jsonl", jsonl);
	put_text(fs, "data/numbers.csv", numbers);
	struct hd_dataset *a = open_ok(fs, &spec);
	spec.path = "data/list.jsonl";
	struct hd_dataset *b = open_ok(fs, &spec);
	spec.path = "data/numbers.csv";
	struct hd_dataset *c = open_ok(fs, &spec);
	assert_int_equal(a->count, 3);
	assert_int_equal(c->count, 2);
	assert_true(hd_hash_same(a->hash, b->hash) && !hd_hash_same(a->hash, c->hash));
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(label_at(a, 0, i, x), i != 1);       /* bee, wasp */
		assert_int_equal(label_at(b, 0, i, y), i != 1);
		assert_memory_equal(x, y, sizeof x);
	}
	assert_int_equal(label_at(c, 0, 0, x), 7);
	assert_int_equal(label_at(c, 0, 1, x), 0);
	hd_dataset_destroy(a);
	hd_dataset_destroy(b);
	hd_dataset_destroy(c);
	hd_fs_sim_finish(&sim);
}

static void what_a_folder_or_a_list_gets_wrong_is_one_line(void **state)
{
	static const struct { const char *path, *text, *open, *says; } cases[] = {
		{ "none", NULL, "none", "none holds no folder" },
		{ "data/dog", NULL, "data", "data/dog holds no image" },
		{ "data/Ant", NULL, "data", "the classes Ant and ant differ by case alone" },
		{ "data/cow/3.webp", "RIFF", "data", "data/cow/3.webp is an image of a form that is not read" },
		{ "data/cow/3.png", "no image at all", "data", "data/cow/3.png begins neither as JPEG nor as PNG" },
		{ "data/cow/3.png", "", "data", "data/cow/3.png has 0 bytes" },
		{ "l/list.csv", "file,label\n", "l/list.csv", "l/list.csv names no image" },
		{ "l/list.csv", "path,label\na.png,1\n", "l/list.csv", "has no column file" },
		{ "l/list.csv", "file,label\n/etc/a.png,1\n", "l/list.csv", "l/list.csv:2: /etc/a.png: files of a list lie beneath" },
		{ "l/list.csv", "file,label\n../data/cow/1.png,1\n", "l/list.csv", "data/cow/1.png" },
		{ "l/list.csv", "file,label\na.png,\n", "l/list.csv", "l/list.csv:2: the label is empty" },
		{ "l/list.jsonl", "{\"file\": \"a.png\"}\n", "l/list.jsonl", "l/list.jsonl:1 has no member \"label\"" },
		{ "l/list.jsonl", "{\"file\"\n", "l/list.jsonl", "l/list.jsonl:1" },
		{ "l/list.csv", "file,label\na.png,1\n", "l/list.csv", "l/a.png" },
		{ "l/list.txt", "a.png 1\n", "l/list.txt", "neither a folder nor a list" },
		{ "val/list.csv", "file,label\na.png,10\n", "val/list.csv", "a.png is of class 10, the model has the classes 0 to 9" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_fs *fs = make_folder();
		struct hd_dataset *set = NULL;
		struct hd_diag diag = { "" };
		const struct hd_data_spec spec = spec_of(cases[k].open);
		char folder[60];
		snprintf(folder, sizeof folder, "%s", cases[k].path);
		if (cases[k].text && strrchr(folder, '/'))
			*strrchr(folder, '/') = '\0';
		put_folder(fs, folder);
		if (cases[k].text)
			put_text(fs, cases[k].path, cases[k].text);
		const enum hd_err err = hd_dataset_open(&set, &spec, fs, &diag);
		CHECK((err == HD_E_INPUT || err == HD_E_NOTFOUND || err == HD_E_REFUSED) && strstr(diag.text,
			cases[k].says), "case %zu: %d %s", k, err, diag.text);
		hd_fs_sim_finish(&sim);
	}
}

/* The head of a PNG of 2^26 x 1 pixels, and as many bytes as they need: as wide as 2^38 at data.size 4096. */
static void an_image_of_one_row_is_refused_when_it_is_opened(void **state)
{
	static uint8_t png[8200] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D',
		'R', 4, 0, 0, 0, 0, 0, 0, 1, 1, 0 };
	struct hd_fs *fs = make_folder();
	struct hd_data_spec spec = spec_of("data");
	struct hd_dataset *set = NULL;
	struct hd_diag diag = { "" };

	(void)state;
	put_file(fs, "data/cow/3.png", png, sizeof png);
	spec.size = 4096;
	assert_int_equal(hd_dataset_open(&set, &spec, fs, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "data/cow/3.png has 67108864 x 1 pixels"), "%s", diag.text);
	spec.size = 0;
	spec.stretch = true;
	hd_dataset_destroy(open_ok(fs, &spec));
	hd_fs_sim_finish(&sim);
}

static void a_file_that_changed_or_is_gone_ends_the_reading(void **state)
{
	struct hd_fs *fs = make_folder();
	const struct hd_data_spec spec = spec_of("data");
	struct hd_dataset *set = open_ok(fs, &spec);
	float x[PIXELS];
	int32_t y;
	void *out[HD_MAX_FIELDS] = { x, &y };
	struct hd_diag diag = { "" };

	(void)state;
	uint8_t bytes[2000];                          /* as long as it was, with another last byte */
	struct hd_file file = { 0 };
	size_t len = 0;
	assert_int_equal(hd_file_open(fs, "data/cow/1.png", HD_OPEN_READ, &file, &diag), HD_OK);
	assert_int_equal(hd_file_read(&file, bytes, sizeof bytes, &len, &diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &diag), HD_OK);
	bytes[len - 1] ^= 1;
	put_file(fs, "data/cow/1.png", bytes, len);
	assert_int_equal(hd_dataset_read(set, 0, 3, HD_NO_EPOCH, out, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "data/cow/1.png is not what it was"), "%s", diag.text);
	diag.text[0] = '\0';
	assert_int_equal(hd_fs_unlink(fs, "data/cow/2.png", &diag), HD_OK);
	assert_int_equal(hd_dataset_read(set, 0, 4, HD_NO_EPOCH, out, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "data/cow/2.png is gone"), "%s", diag.text);
	put_image(fs, "data/cow/1.png", "rgba.png");                  /* the old one is back */
	assert_int_equal(label_at(set, 0, 3, x), 2);
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

/* The part is drawn from the image as it is stored: by sample and epoch, the same however often it is read.
 * */
static void a_part_is_of_the_stored_image_and_keyed(void **state)
{
	struct hd_fs *fs = make_folder();
	const struct hd_data_spec spec = spec_of("data");
	struct hd_dataset *set = open_ok(fs, &spec);
	struct hd_augment augment = { .seed = 3, .part_taken = set->takes_part };
	struct hd_diag diag = { "" };
	float plain[PIXELS], x[2][PIXELS], other[PIXELS];
	int32_t y;

	(void)state;
	CHECK(hd_augment_add(&augment, &(struct hd_augment_call){ "resized_crop", NULL, 0 }, &set->field[0],
		&diag) ==
		HD_OK, "%s", diag.text);
	set->augment = &augment;
	label_at(set, 0, 1, plain);
	for (int k = 0; k < 2; k++)
		assert_int_equal(hd_dataset_read(set, 0, 1, 5, (void *[]){ x[k], &y }, &diag), HD_OK);
	assert_int_equal(hd_dataset_read(set, 0, 1, 6, (void *[]){ other, &y }, &diag), HD_OK);
	assert_memory_equal(x[0], x[1], sizeof plain);
	assert_true(memcmp(x[0], plain, sizeof plain) && memcmp(x[0], other, sizeof plain));
	label_at(set, 0, 1, other);
	assert_memory_equal(other, plain, sizeof plain);
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_is_its_folders_by_the_bytes_of_their_names),
		cmocka_unit_test(names_of_classes_in_the_job_give_their_order),
		cmocka_unit_test(folders_of_splits_are_those_splits),
		cmocka_unit_test(a_list_is_its_rows_whatever_its_form),
		cmocka_unit_test(what_a_folder_or_a_list_gets_wrong_is_one_line),
		cmocka_unit_test(an_image_of_one_row_is_refused_when_it_is_opened),
		cmocka_unit_test(a_file_that_changed_or_is_gone_ends_the_reading),
		cmocka_unit_test(a_part_is_of_the_stored_image_and_keyed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
