// SPDX-License-Identifier: MIT
/*
 * profile.proto of github.com/google/pprof, compressed by gzip. A location is a place in a file,
 * with a line for each function that was inlined there, the innermost first. Each kind of time is
 * a sample type of its own; the number of samples is another.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "profile/words.h"
#include "profile/writers.h"

enum { /* fields of Profile */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME = 9,
       PROFILE_DURATION = 10,
       PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12,
       PROFILE_COMMENT = 13,
       PROFILE_DEFAULT_TYPE = 14,
};

enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_FUNCTIONS = 7,
	MAPPING_FILENAMES = 8,
	MAPPING_LINES = 9,
	MAPPING_INLINED = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
	FUNCTION_LINE = 5
};

static const char *const types[WEIGHT_KINDS] = {
	[WEIGHT_CPU] = "cpu",
	[WEIGHT_OFF_CPU] = "off_cpu",
	[WEIGHT_GPU] = "gpu_time",
	[WEIGHT_HOOK] = "hook_time",
};

/*
 * A place: its outermost function, and what is inlined there as a place of its own. One whose
 * function is itself inlined is a part only.
 */
struct place {
	uint32_t inner, frame; /* inner: KEEP_NONE for none */
};

#define WHOLE 1 /* in pprof.whole: samples refer to that place */

struct named_function {
	uint32_t name, file, line; /* texts of the profile */
	uint32_t mangled;          /* 1: pprof may shorten it, as it does names of C++ */
};

/* A file that frames are of: those of one name with another build id are other files. */
struct pprof_file {
	uint32_t module, build_id; /* texts of the profile */
	uint64_t limit;            /* beyond the offsets that occur */
};

struct pprof {
	const struct profile *profile;
	const struct profile_info *info;
	struct lines *lines;
	struct buf *out;
	unsigned kinds; /* that occur */
	struct keep_room room;
	struct keep_texts strings;
	struct keep_index places_by, functions_by, files_by;
	struct place *places;
	struct buf whole; /* a byte for each place */
	struct named_function *functions;
	struct pprof_file *files;
	size_t n_places, n_functions, n_files;
	struct buf text, values;
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* The number of a string: valid UTF-8 without controls. */
static uint64_t string_of(struct pprof *pprof, const char *text)
{
	buf_reset(&pprof->text);
	text_add_safe(&pprof->text, text ? text : "");
	return keep_text(&pprof->room, &pprof->strings, pprof->text.data);
}

static void add_string(struct pprof *pprof, uint32_t field, const char *text)
{
	pb_varint(pprof->out, field, string_of(pprof, text));
}

static const char *text_at(const struct pprof *pprof, uint32_t text)
{
	return profile_text(pprof->profile, text);
}

static void add_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
	size_t begin = pb_begin(pprof->out, field);

	add_string(pprof, VALUE_TYPE, type);
	add_string(pprof, VALUE_UNIT, unit);
	pb_end(pprof->out, begin);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t find_place(struct pprof *pprof, uint32_t inner, uint32_t frame)
{
	struct place place = { inner, frame };
	size_t n = pprof->n_places;
	uint32_t at = keep_element(&pprof->room, &pprof->places_by, &pprof->places,
	                           &pprof->n_places, &place, sizeof(place), sizeof(place));

	if (pprof->n_places > n)
		buf_putc(&pprof->whole, 0);
	return at;
}

/*
 * Without templates and parameters pprof shows a name that stands as the system's as well. <module>
 * and <lambda> of Python would be nothing then, and kernels of other types the same.
 */
static bool may_be_shortened(const struct profile_frame *frame)
{
	return frame->kind != FRAME_PYTHON && frame->kind != FRAME_GPU;
}

static uint32_t find_function(struct pprof *pprof, const struct profile_frame *frame)
{
	struct named_function key = { frame->function ? frame->function : frame->label, frame->file,
		                      frame->first_line, may_be_shortened(frame) };

	return keep_element(&pprof->room, &pprof->functions_by, &pprof->functions,
	                    &pprof->n_functions, &key, sizeof(key), sizeof(key));
}

/* Whether a place goes on in the frame outside of it. */
static bool is_part(const struct pprof *pprof, uint32_t node)
{
	return profile_frame_of(pprof->profile, node)->inlined &&
	       pprof->profile->nodes[node].parent != KEEP_NONE;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void add_number(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_putc(out, (char)(value | 0x80));
	buf_putc(out, (char)value);
}

static void add_label(struct pprof *pprof, const char *key, const char *text, uint64_t number)
{
	size_t begin;

	if (!number && !*text)
		return;
	begin = pb_begin(pprof->out, SAMPLE_LABEL);
	add_string(pprof, LABEL_KEY, key);
	if (*text)
		add_string(pprof, LABEL_STRING, text);
	else
		pb_varint(pprof->out, LABEL_NUMBER, number);
	pb_end(pprof->out, begin);
}

static void add_locations(struct pprof *pprof, uint32_t node)
{
	uint32_t place = KEEP_NONE;

	buf_reset(&pprof->values);
	for (; node != KEEP_NONE; node = pprof->profile->nodes[node].parent) {
		place = find_place(pprof, place, pprof->profile->nodes[node].frame);
		if (is_part(pprof, node))
			continue;
		pprof->whole.data[place] = WHOLE;
		add_number(&pprof->values, place + 1ull);
		place = KEEP_NONE;
	}
	pb_bytes(pprof->out, SAMPLE_LOCATION, pprof->values.data, pprof->values.len);
}

static void add_values(struct pprof *pprof, const struct profile_sums *sums)
{
	uint64_t count = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (pprof->kinds & 1u << kind)
			count = words_sum(count, sums->count[kind]);
	}
	buf_reset(&pprof->values);
	add_number(&pprof->values, count);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (pprof->kinds & 1u << kind)
			add_number(&pprof->values, sums->ns[kind]);
	}
	pb_bytes(pprof->out, SAMPLE_VALUE, pprof->values.data, pprof->values.len);
}

static void add_sample(struct pprof *pprof, const struct profile_row *row)
{
	const struct profile_task *task = &pprof->profile->tasks[row->key.task];
	size_t begin = pb_begin(pprof->out, PROFILE_SAMPLE);

	add_locations(pprof, row->key.node);
	add_values(pprof, &row->sums);
	add_label(pprof, "process", text_at(pprof, task->comm), 0);
	add_label(pprof, "pid", "", task->pid);
	add_label(pprof, "thread", text_at(pprof, task->thread), 0);
	add_label(pprof, "tid", "", task->tid);
	if (row->key.end < STACK_END_COUNT)
		add_label(pprof, "stack_ends_at", stack_end_text(row->key.end), 0);
	pb_end(pprof->out, begin);
}

static bool has_any(const struct pprof *pprof, const struct profile_row *row)
{
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (pprof->kinds & 1u << kind && row->sums.count[kind])
			return true;
	}
	return false;
}

/* ---- what samples refer to ------------------------------------------------------------------- */

static uint32_t find_file(struct pprof *pprof, const struct profile_frame *frame)
{
	struct pprof_file key = { frame->module, frame->build_id, 0 };

	return keep_element(&pprof->room, &pprof->files_by, &pprof->files, &pprof->n_files, &key,
	                    sizeof(key), offsetof(struct pprof_file, limit));
}

/* The mapping of a frame's file; 0: none. */
static uint32_t mapping_of(struct pprof *pprof, const struct profile_frame *frame)
{
	static const unsigned not_mapped = 1u << FRAME_PYTHON | 1u << FRAME_GPU;
	struct pprof_file *file;
	uint32_t at;

	if (!frame->module || not_mapped >> frame->kind & 1)
		return 0;
	at = find_file(pprof, frame);
	file = &pprof->files[at];
	if (frame->offset >= file->limit)
		file->limit = frame->offset < UINT64_MAX ? frame->offset + 1 : frame->offset;
	return at + 1;
}

/* The functions of a place, the innermost first: `place` has the outermost. */
static void add_lines(struct pprof *pprof, const struct place *place)
{
	AT_END(buf_free) struct buf parts = { 0 };
	size_t n = 0;

	for (const struct place *at = place;; at = &pprof->places[at->inner]) {
		buf_add(&parts, &at->frame, sizeof(at->frame));
		n++;
		if (at->inner == KEEP_NONE)
			break;
	}
	while (n--) {
		size_t begin = pb_begin(pprof->out, LOCATION_LINE);
		const struct profile_frame *frame;
		uint32_t number;

		memcpy(&number, parts.data + n * sizeof(number), sizeof(number));
		frame = &pprof->profile->frames[number];
		pb_varint(pprof->out, LINE_FUNCTION, find_function(pprof, frame) + 1ull);
		pb_varint(pprof->out, LINE_LINE, frame->line);
		pb_end(pprof->out, begin);
	}
}

static void add_location(struct pprof *pprof, uint32_t at)
{
	const struct place *place = &pprof->places[at];
	const struct profile_frame *frame = &pprof->profile->frames[place->frame];
	uint32_t mapping = mapping_of(pprof, frame);
	size_t begin = pb_begin(pprof->out, PROFILE_LOCATION);

	pb_varint(pprof->out, LOCATION_ID, at + 1ull);
	if (mapping) {
		pb_varint(pprof->out, LOCATION_MAPPING, mapping);
		pb_varint(pprof->out, LOCATION_ADDRESS, frame->offset);
	}
	add_lines(pprof, place);
	pb_end(pprof->out, begin);
}

static void add_function(struct pprof *pprof, size_t at)
{
	const struct named_function *function = &pprof->functions[at];
	size_t begin = pb_begin(pprof->out, PROFILE_FUNCTION);

	pb_varint(pprof->out, FUNCTION_ID, at + 1);
	add_string(pprof, FUNCTION_NAME, text_at(pprof, function->name));
	if (function->mangled)
		add_string(pprof, FUNCTION_SYSTEM_NAME, text_at(pprof, function->name));
	add_string(pprof, FUNCTION_FILE, text_at(pprof, function->file));
	pb_varint(pprof->out, FUNCTION_LINE, function->line);
	pb_end(pprof->out, begin);
}

/* Offsets in the file are addresses: the mapping begins at 0. */
static void add_mapping(struct pprof *pprof, size_t at)
{
	const struct pprof_file *file = &pprof->files[at];
	size_t begin = pb_begin(pprof->out, PROFILE_MAPPING);

	pb_varint(pprof->out, MAPPING_ID, at + 1);
	pb_varint(pprof->out, MAPPING_START, 0);
	pb_varint(pprof->out, MAPPING_LIMIT, file->limit);
	add_string(pprof, MAPPING_FILE, text_at(pprof, file->module));
	if (file->build_id)
		add_string(pprof, MAPPING_BUILD_ID, text_at(pprof, file->build_id));
	/* pprof need not look for names itself: what has none here has none there */
	for (uint32_t field = MAPPING_FUNCTIONS; field <= MAPPING_INLINED; field++)
		pb_varint(pprof->out, field, 1);
	pb_end(pprof->out, begin);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void add_types(struct pprof *pprof)
{
	add_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (pprof->kinds & 1u << kind)
			add_type(pprof, PROFILE_SAMPLE_TYPE, types[kind], "nanoseconds");
	}
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (!(pprof->kinds & 1u << kind))
			continue;
		add_string(pprof, PROFILE_DEFAULT_TYPE, types[kind]);
		return;
	}
}

static void add_run(struct pprof *pprof)
{
	const struct profile_info *info = pprof->info;
	AT_END(buf_free) struct buf text = { 0 };

	pb_varint(pprof->out, PROFILE_TIME, info->begin_ns);
	pb_varint(pprof->out, PROFILE_DURATION, info->duration_ns);
	if (info->rate_hz) {
		add_type(pprof, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		pb_varint(pprof->out, PROFILE_PERIOD, 1000000000ull / info->rate_hz);
	}
	words_add_title(pprof->profile, info, &text);
	add_string(pprof, PROFILE_COMMENT, text.data);
	buf_reset(&text);
	buf_puts(&text, "Completeness: ");
	profile_completeness(pprof->profile, &text);
	add_string(pprof, PROFILE_COMMENT, text.data);
	for (size_t i = 0; i < info->n_notes; i++)
		add_string(pprof, PROFILE_COMMENT, info->notes[i]);
}

static void choose_kinds(struct pprof *pprof)
{
	struct profile_sums all;

	profile_total(pprof->profile, &all);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (info_kinds(pprof->info) & 1u << kind && all.count[kind])
			pprof->kinds |= 1u << kind;
	}
	if (!pprof->kinds)
		pprof->kinds = 1u << WEIGHT_CPU;
}

/* Not a library, and not what the kernel calls in brackets. */
static bool is_program(const struct pprof *pprof, const struct profile_frame *frame)
{
	const char *name = text_at(pprof, frame->module);

	return frame->kind == FRAME_NATIVE && frame->module && *name != '[' && !strstr(name, ".so");
}

/* The outermost of a stack: what a shell's child was before it exec'ed is of other stacks. */
static const struct profile_frame *program_of(const struct pprof *pprof, uint32_t node)
{
	const struct profile_frame *program = NULL;

	for (; node != KEEP_NONE; node = pprof->profile->nodes[node].parent) {
		const struct profile_frame *frame = profile_frame_of(pprof->profile, node);

		program = is_program(pprof, frame) ? frame : program;
	}
	return program;
}

static uint64_t time_of(const struct pprof *pprof, const struct profile_row *row)
{
	uint64_t ns = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (pprof->kinds & 1u << kind)
			ns = words_sum(ns, row->sums.ns[kind]);
	}
	return ns;
}

/* pprof takes the first mapping for the program: that in which most of the time is. */
static void put_program_first(struct pprof *pprof)
{
	uint64_t *times = xcalloc(pprof->profile->texts.n, sizeof(*times));
	const struct profile_frame *program = NULL;

	for (size_t i = 0; i < pprof->profile->n_rows; i++) {
		const struct profile_row *row = &pprof->profile->rows[i];
		const struct profile_frame *frame = program_of(pprof, row->key.node);

		if (!frame || !has_any(pprof, row))
			continue;
		times[frame->module] = words_sum(times[frame->module], time_of(pprof, row));
		if (!program || times[frame->module] > times[program->module])
			program = frame;
	}
	free(times);
	if (program)
		find_file(pprof, program);
}

static void add_all_locations(struct pprof *pprof)
{
	put_program_first(pprof);
	for (uint32_t i = 0; i < pprof->n_places; i++) {
		if (!pprof->whole.data[i])
			continue;
		add_location(pprof, i);
		lines_added(pprof->lines, NULL);
	}
}

static void add_samples(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->profile->n_rows; i++) {
		if (!has_any(pprof, &pprof->profile->rows[i]))
			continue;
		add_sample(pprof, &pprof->profile->rows[i]);
		lines_added(pprof->lines, NULL);
	}
}

static void add_definitions(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->n_functions; i++) {
		add_function(pprof, i);
		lines_added(pprof->lines, NULL);
	}
	for (size_t i = 0; i < pprof->n_files; i++) {
		add_mapping(pprof, i);
		lines_added(pprof->lines, NULL);
	}
}

static void add_strings(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->strings.n; i++) {
		pb_string(pprof->out, PROFILE_STRING, pprof->strings.texts[i]);
		lines_added(pprof->lines, NULL);
	}
}

void pprof_write(const struct profile *profile, const struct profile_info *info,
                 struct lines *lines)
{
	struct pprof pprof = {
		.profile = profile,
		.info = info,
		.lines = lines,
		.out = &lines->pending,
		.room = { 0, SIZE_MAX },
	};

	string_of(&pprof, ""); /* the first one has to be */
	choose_kinds(&pprof);
	add_types(&pprof);
	add_run(&pprof);
	add_samples(&pprof);
	add_all_locations(&pprof);
	add_definitions(&pprof);
	add_strings(&pprof);
	keep_texts_free(&pprof.strings);
	keep_index_free(&pprof.places_by);
	keep_index_free(&pprof.functions_by);
	keep_index_free(&pprof.files_by);
	free(pprof.places);
	free(pprof.functions);
	free(pprof.files);
	buf_free(&pprof.whole);
	buf_free(&pprof.text);
	buf_free(&pprof.values);
}
