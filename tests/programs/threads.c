// SPDX-License-Identifier: MIT
/* threads [THREADS] [LAUNCHES]: each thread launches on its own stream and, every tenth time, also
 */
/* allocates, copies and frees. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

static struct gpu gpu;
static int launches = 1000;

static void *run(void *data)
{
	CUstream stream;
	char text[512];
	memset(text, 1, sizeof(text));
	count_thread();
	gpu_attach(&gpu);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < launches; i++) {
		gpu_launch(&gpu, 1 + (unsigned int)i % 16, stream);
		if (i % 10)
			continue;
		CUdeviceptr address = gpu_alloc(sizeof(text));
		gpu_to_device(address, text, sizeof(text));
		gpu_from_device(text, address, sizeof(text) / 2);
		gpu_free(address);
	}
	MUST(cuStreamSynchronize, stream);
	MUST(cuStreamDestroy_v2, stream);
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	if (argc > 2)
		launches = atoi(argv[2]);
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));
	if (!thread)
		sample_die("no memory");
	gpu_open(&gpu);
	for (int i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, run, NULL) != 0)
			sample_die("no thread");
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
