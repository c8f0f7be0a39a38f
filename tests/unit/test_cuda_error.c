// SPDX-License-Identifier: MIT
/* Names of results; compared with the toolkit's headers where they are installed. */
#include "unit.h"

#include <ctype.h>

#include "cuda/error.h"

static void test_the_two_numberings_are_told_apart(void **state)
{
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 0), "cudaSuccess");
	assert_string_equal(cuda_error_name(LAYER_DRIVER, 0), "CUDA_SUCCESS");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 2), "cudaErrorMemoryAllocation");
	assert_string_equal(cuda_error_name(LAYER_DRIVER, 2), "CUDA_ERROR_OUT_OF_MEMORY");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 4), "cudaErrorCudartUnloading");
	assert_string_equal(cuda_error_name(LAYER_DRIVER, 4), "CUDA_ERROR_DEINITIALIZED");
}

/* Numbered one after the other, as an earlier tracer did, these come out wrong. */
static void test_names_follow_the_gaps_in_the_numbers(void **state)
{
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 12), "cudaErrorInvalidPitchValue");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 35), "cudaErrorInsufficientDriver");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 46), "cudaErrorDevicesUnavailable");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 98), "cudaErrorInvalidDeviceFunction");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 100), "cudaErrorNoDevice");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 209), "cudaErrorNoKernelImageForDevice");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 700), "cudaErrorIllegalAddress");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 900),
	                    "cudaErrorStreamCaptureUnsupported");
	assert_string_equal(cuda_error_name(LAYER_RUNTIME, 999), "cudaErrorUnknown");
	assert_string_equal(cuda_error_name(LAYER_DRIVER, 700), "CUDA_ERROR_ILLEGAL_ADDRESS");
	assert_string_equal(cuda_error_name(LAYER_DRIVER, 719), "CUDA_ERROR_LAUNCH_FAILED");
}

static void test_numbers_without_a_name_have_none(void **state)
{
	assert_null(cuda_error_name(LAYER_RUNTIME, -1));
	assert_null(cuda_error_name(LAYER_RUNTIME, 99));
	assert_null(cuda_error_name(LAYER_DRIVER, 12));
	assert_null(cuda_error_name(LAYER_DRIVER, 123456));
}

static void test_not_ready_is_no_failure(void **state)
{
	assert_true(cuda_error_is_status(LAYER_RUNTIME, 600));
	assert_true(cuda_error_is_status(LAYER_DRIVER, 600));
	assert_false(cuda_error_is_status(LAYER_RUNTIME, 2));
	assert_false(cuda_error_is_status(LAYER_DRIVER, 999));
}

/* ---- against the headers ------------------------------------------------------------------- */

static FILE *open_header(const char *name)
{
	const char *home = getenv("CUDA_HOME");
	char path[4096];

	snprintf(path, sizeof(path), "%s/include/%s", home ? home : "/usr/local/cuda", name);
	return fopen(path, "r");
}

/* 13000 for 13.0; a toolkit newer than the table may have names that this lacks. */
static int toolkit_version(void)
{
	FILE *header = open_header("cuda.h");
	int version = 0;
	char line[4096];

	while (header && fgets(line, sizeof(line), header))
		if (sscanf(line, "#define CUDA_VERSION %d", &version) == 1)
			break;
	if (header)
		fclose(header);
	return version;
}

/* The enumerators `prefix...= number` of one enum; returns how many there were. */
static int compare_enum(FILE *header, const char *begin, const char *prefix, enum api_layer layer)
{
	char line[4096], name[128];
	bool inside = false;
	int code, count = 0;

	while (fgets(line, sizeof(line), header)) {
		const char *at = line;

		if (!inside) {
			inside = strstr(line, begin) && !strchr(line, ';');
			continue;
		}
		if (line[0] == '}')
			break;
		while (isspace((unsigned char)*at))
			at++;
		if (strncmp(at, prefix, strlen(prefix)) ||
		    sscanf(at, "%127[A-Za-z0-9_] = %d", name, &code) != 2)
			continue;
		if (!cuda_error_name(layer, code)) {
			if (toolkit_version() <= 13000)
				fail_msg("%d has no name, header says %s", code, name);
			print_message("new since CUDA 13.0: %s\n", name);
			continue;
		}
		count++;
		assert_string_equal(cuda_error_name(layer, code), name);
	}
	return count;
}

static int known(enum api_layer layer)
{
	int count = 0;

	for (int code = 0; code < 20000; code++)
		count += cuda_error_name(layer, code) != NULL;
	return count;
}

static void test_every_error_of_the_headers_has_its_name(void **state)
{
	FILE *runtime = open_header("driver_types.h"), *driver = open_header("cuda.h");

	if (!runtime || !driver) {
		if (runtime)
			fclose(runtime);
		if (driver)
			fclose(driver);
		SKIP("no CUDA headers in $CUDA_HOME or /usr/local/cuda: not compared");
	}
	/* A header older than the table has fewer. */
	assert_in_range(compare_enum(runtime, " cudaError", "cuda", LAYER_RUNTIME), 100,
	                known(LAYER_RUNTIME));
	assert_in_range(compare_enum(driver, "enum cudaError_enum", "CUDA_", LAYER_DRIVER), 80,
	                known(LAYER_DRIVER));
	fclose(runtime);
	fclose(driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_two_numberings_are_told_apart),
		cmocka_unit_test(test_names_follow_the_gaps_in_the_numbers),
		cmocka_unit_test(test_numbers_without_a_name_have_none),
		cmocka_unit_test(test_not_ready_is_no_failure),
		cmocka_unit_test(test_every_error_of_the_headers_has_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
