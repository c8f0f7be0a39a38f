// SPDX-License-Identifier: MIT
/*
 * The tables against the prototypes of CUDA 13.0's headers, where they are installed: names and
 * order of the arguments, and how many bytes each takes. Wrong there means wrong values in every
 * trace, and no other test would notice.
 */
#include "unit.h"

#include <ctype.h>

#include "base/array.h"
#include "cuda/row.h"

struct headers {
	char *text; /* preprocessed, in one line */
	size_t len;
};

static const char *toolkit(void)
{
	const char *home = getenv("CUDA_HOME");

	return home ? home : "/usr/local/cuda";
}

/* The version that the tables are of: others declare other arguments under the same names. */
static bool is_toolkit_13_0(void)
{
	char path[4096], line[4096];
	bool found = false;
	FILE *header;

	snprintf(path, sizeof(path), "%s/include/cuda.h", toolkit());
	header = fopen(path, "r");
	while (header && !found && fgets(line, sizeof(line), header))
		found = !strncmp(line, "#define CUDA_VERSION 13000", 26);
	if (header)
		fclose(header);
	return found;
}

static int read_headers(void **state)
{
	struct headers *h = calloc(1, sizeof(*h));
	char command[8192];
	bool blank = false;
	FILE *pipe;
	int c;

	*state = h;
	if (!h)
		return -1;
	if (!is_toolkit_13_0())
		return 0;
	snprintf(command, sizeof(command),
	         "{ printf '#include <cuda.h>\\n' | cc -E -P -x c -D__CUDA_API_VERSION_INTERNAL "
	         "-I%s/include -; "
	         "printf '#include <cuda_runtime_api.h>\\n' | cc -E -P -x c -I%s/include -; } "
	         "2>/dev/null",
	         toolkit(), toolkit());
	pipe = popen(command, "r");
	h->text = malloc(32 << 20);
	if (!pipe || !h->text)
		return -1;
	while ((c = fgetc(pipe)) != EOF && h->len + 1 < 32 << 20) {
		if (isspace(c)) {
			blank = true;
			continue;
		}
		if (blank)
			h->text[h->len++] = ' ';
		blank = false;
		h->text[h->len++] = (char)c;
	}
	h->text[h->len] = '\0';
	return pclose(pipe);
}

static int free_headers(void **state)
{
	struct headers *h = *state;

	free(h->text);
	free(h);
	return 0;
}

/* What follows the opening parenthesis of the prototype of `name`; NULL where there is none. */
static const char *find_prototype(const struct headers *h, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = h->text; (at = strstr(at, name)); at += len) {
		const char *open = at + len + (at[len] == ' ');

		if (at > h->text && (at[-1] == ' ' || at[-1] == '*') && *open == '(')
			return open + 1;
	}
	return NULL;
}

struct param {
	char text[256]; /* "const void *func" */
	char name[256]; /* "func" */
	bool pointer;
};

/* Takes the next parameter off; false at the end of the list. */
static bool take_param(const char **at, struct param *param)
{
	size_t len = strcspn(*at, ",)"), name;

	while (**at == ' ') {
		++*at;
		len--;
	}
	if (!len || len >= sizeof(param->text) || !strncmp(*at, "void)", 5))
		return false;
	snprintf(param->text, sizeof(param->text), "%.*s", (int)len, *at);
	*at += len + (**at && (*at)[len] == ',');
	while (len && param->text[len - 1] == ' ')
		param->text[--len] = '\0';
	for (name = len; name && (isalnum((unsigned char)param->text[name - 1]) ||
	                          param->text[name - 1] == '_');)
		name--;
	snprintf(param->name, sizeof(param->name), "%s", param->text + name);
	param->pointer = strchr(param->text, '*') != NULL;
	param->text[name] = '\0';
	return true;
}

/* Bytes of a C type as it is passed; 0 for typedefs of enums and handles, which may be either. */
static unsigned c_bytes(const struct param *param)
{
	static const struct {
		const char *type;
		unsigned bytes;
	} types[] = {
		{ "size_t ", 8 },
		{ "unsigned long long ", 8 },
		{ "cuuint64_t ", 8 },
		{ "CUdeviceptr ", 8 },
		{ "CUmemGenericAllocationHandle ", 8 },
		{ "CUmemLocation ", 8 },
		{ "struct cudaMemLocation ", 8 },
		{ "int ", 4 },
		{ "unsigned int ", 4 },
		{ "unsigned short ", 4 },
		{ "unsigned char ", 4 },
		{ "unsigned ", 4 },
		{ "cuuint32_t ", 4 },
		{ "CUdevice ", 4 },
		{ "CUdeviceptr_v1 ", 4 },
		{ "enum ", 4 },
		{ "dim3 ", 12 },
		{ "struct cudaExtent ", 24 },
		{ "struct cudaPitchedPtr ", 32 },
		{ "CUipcMemHandle ", 64 },
		{ "cudaIpcMemHandle_t ", 64 },
	};

	if (param->pointer)
		return 8;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(param->text, types[i].type) ||
		    (types[i].bytes == 4 && !strcmp(types[i].type, "enum ") &&
		     !strncmp(param->text, "enum ", 5)))
			return types[i].bytes;
	return 0;
}

/* What an output pointer points at: 4, 8 or 0 for not known. */
static unsigned pointed_bytes(const struct param *param)
{
	struct param target = *param;
	char *star = strchr(target.text, '*');

	if (!star || strchr(star + 1, '*'))
		return star ? 8 : 0;
	*star = '\0';
	target.pointer = false;
	if (!strncmp(target.text, "float", 5))
		return 4;
	if (target.text[0] && star[-1] != ' ')
		memcpy(star, " ", 2);
	return c_bytes(&target);
}

/* Bytes that the row says a parameter has: of the value in it, or of what it points at. */
static void row_bytes(const struct api *api, unsigned param, unsigned *value, unsigned *pointed)
{
	*value = api->param_bytes[param];
	*pointed = 0;
	for (size_t i = 0; i < api->n_pieces; i++) {
		const struct piece *piece = &api->piece[i];

		if (piece->param != param || (piece->deref && piece->offset))
			continue;
		if (piece->out)
			*pointed = piece->width;
		else if (!piece->deref && api->param_bytes[param] == 8)
			*value = piece->width;
	}
}

/* The name of the row's C parameter: of the argument that shows it. */
static const char *row_name(const struct api *api, unsigned param, const char **suffix)
{
	static const char *const xyz[] = { "X", "Y", "Z" };

	*suffix = "";
	for (size_t i = 0; i < api->n_pieces; i++) {
		const struct piece *piece = &api->piece[i];

		if (piece->param != param || piece->arg == NO_ARG || (piece->deref && !piece->out))
			continue;
		if (piece->out && piece->offset)
			continue;
		if (api->param_bytes[param] == 8 && piece->type == T_GRID)
			*suffix = xyz[piece->part - PART_GRID];
		if (api->param_bytes[param] == 8 && piece->type == T_BLOCK)
			*suffix = xyz[piece->part - PART_BLOCK];
		if (api->param_bytes[param] <= 12)
			return api->arg[piece->arg].name;
	}
	return NULL;
}

/* Names that differ on purpose; see the head of driver_functions.c. */
static bool is_renamed(const char *symbol)
{
	return !strncmp(symbol, "cuMemAlloc_v2", 13) || !strcmp(symbol, "cuMemAlloc") ||
	       !strncmp(symbol, "cuMemFree", 9) || !strncmp(symbol, "cuLaunchGrid", 12);
}

static int check_param(const struct api *api, unsigned index, const struct param *param)
{
	const char *suffix, *name = row_name(api, index, &suffix);
	unsigned value, pointed, c = c_bytes(param), c_pointed = pointed_bytes(param);
	char shown[64];

	row_bytes(api, index, &value, &pointed);
	snprintf(shown, sizeof(shown), "%s%s", name ? name : "", suffix);
	if (name && strcmp(shown, param->name) && !is_renamed(api->row->name)) {
		print_error("%s: %s should be %s\n", api->row->name, shown, param->name);
		return 1;
	}
	if ((c && value != c) || (pointed && !param->pointer) ||
	    (pointed && c_pointed && pointed != c_pointed && c_pointed <= 8)) {
		print_error("%s: %s is %u/%u bytes, prototype %s says %u/%u\n", api->row->name,
		            param->name, value, pointed, param->text, c, c_pointed);
		return 1;
	}
	return 0;
}

/* Returns how many parameters are wrong, -1 where the headers have no such function. */
static int check_row(const struct headers *h, const char *symbol, const struct api_row *row)
{
	const char *at = find_prototype(h, symbol);
	struct param param;
	struct api api;
	int wrong = 0;

	if (!at)
		return -1;
	assert_true(api_parse(&api, row));
	for (unsigned i = 0; i < api.n_params; i++) {
		if (!take_param(&at, &param)) {
			print_error("%s has %u parameters, not %u\n", symbol, i, api.n_params);
			return wrong + 1;
		}
		wrong += check_param(&api, i, &param);
	}
	return wrong;
}

static void check_table(struct headers *h, const struct api_row *rows, size_t count, size_t least)
{
	size_t compared = 0;
	int failed = 0, wrong;
	char v2[128];

	if (!h->len) {
		SKIP("no CUDA 13.0 headers in $CUDA_HOME or /usr/local/cuda: not compared");
	}
	for (size_t i = 0; i < count; i++) {
		wrong = check_row(h, rows[i].name, &rows[i]);
		compared += wrong >= 0;
		failed += wrong > 0;
		if (!(rows[i].flags & V2))
			continue;
		snprintf(v2, sizeof(v2), "%s_v2", rows[i].name);
		failed += check_row(h, v2, &rows[i]) > 0;
	}
	assert_int_equal(failed, 0);
	assert_true(compared > least);
}

static void test_driver_rows_match_their_prototypes(void **state)
{
	check_table(*state, driver_rows, n_driver_rows, 300);
}

static void test_runtime_rows_match_their_prototypes(void **state)
{
	check_table(*state, runtime_rows, n_runtime_rows, 190);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_rows_match_their_prototypes),
		cmocka_unit_test(test_runtime_rows_match_their_prototypes),
	};

	return cmocka_run_group_tests(tests, read_headers, free_headers);
}
