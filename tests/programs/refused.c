// SPDX-License-Identifier: MIT
/*
 * refused [REFUSED [GOOD [ASKED]]]: GOOD launches that run, the first of which initialises CUDA,
 * and then REFUSED ones that the runtime turns down, so that the driver never hears of them.
 * Without a device (SIMCUDA_DEVICES=0) all are turned down. ASKED more are turned down before
 * these, after each of which it asks for the error's words and waits for a moment.
 */
#include <time.h>

#include "sample.h"

#define KERNEL "_Z5scalePffi"

static struct {
	unsigned magic, version;
	const void *data, *file;
} fatbin = { 0x466243b1, 1, "\x50\xed\x55\xba\x01\x00\x10\x00", NULL };

void _Z5scalePffi(void);

/* The host stub: here only its address counts. */
void _Z5scalePffi(void)
{
}

__attribute__((constructor)) static void register_kernel(void)
{
	void **handle = LINKED(__cudaRegisterFatBinary, &fatbin);

	LINKED(__cudaRegisterFunction, handle, (const char *)_Z5scalePffi, (char *)KERNEL, KERNEL,
	       -1, NULL, NULL, NULL, NULL, NULL);
	LINKED(__cudaRegisterFatBinaryEnd, handle);
}

static int launch(unsigned blocks)
{
	float factor = 2;
	int n = 0;
	void *memory = NULL, *args[] = { &memory, &factor, &n };

	return LINKED(cudaLaunchKernel, (const void *)_Z5scalePffi, (dim3){ blocks, 1, 1 },
	              (dim3){ 32, 1, 1 }, args, 0, NULL);
}

/* As programs do that check their launches. */
static void ask(void)
{
	const struct timespec moment = { .tv_nsec = 300000000 };

	int error;

	launch(0);
	error = LINKED(cudaGetLastError);
	printf("%s\n", LINKED(cudaGetErrorString, error));
	nanosleep(&moment, NULL);
}

int main(int argc, char **argv)
{
	const char *devices = getenv("SIMCUDA_DEVICES");
	bool none = devices && !atoi(devices);
	long refused = sample_number(argc, argv, 1, 500), good = sample_number(argc, argv, 2, 0);
	struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };

	for (long i = 0; i < good; i++)
		sample_check("cudaLaunchKernel", launch(1), 0, NULL);
	if (good)
		count_launches("launches", good, "scale(float*, float, int)", shape, NULL);
	for (long i = sample_number(argc, argv, 3, 0); i > 0; i--)
		ask();
	for (long i = 0; i < refused; i++)
		sample_check("cudaLaunchKernel", launch(0), none ? 100 : 9,
		             none ? "cudaErrorNoDevice" : "cudaErrorInvalidConfiguration");
	return sample_end();
}
