// SPDX-License-Identifier: MIT
/*
 * gpucopies [TIMES]: copies of known sizes between pageable, pinned, device and managed memory,
 * synchronous and not, and sets.
 */
#include "sample.h"

#define ROOM (1 << 20)

enum place { PAGEABLE, PINNED, DEVICE, MANAGED, PLACES };

static const char *const names[] = { "pageable", "pinned", "device", "managed" };
static CUdeviceptr memory[PLACES];
static char pageable[ROOM];
static CUstream stream;

/* As a driver that looks at the pointers tells it: managed memory is the device's. */
static const char *direction(enum place from, enum place to)
{
	static const char *const directions[2][2] = { { "H2H", "H2D" }, { "D2H", "D2D" } };

	return directions[from >= DEVICE][to >= DEVICE];
}

static void ran(enum place from, enum place to, size_t bytes)
{
	count_ran_copies(1, direction(from, to), bytes, names[from], names[to]);
}

/* Sizes tell copies apart: a hundred for each pair, and one to three for the function. */
static void between(enum place from, enum place to)
{
	size_t bytes = 4096 * (1 + (size_t)from * PLACES + (size_t)to);

	DRIVER(cuMemcpy, memory[to], memory[from], bytes);
	count_copies(1, "default", bytes, "sync");
	ran(from, to, bytes);
	DRIVER(cuMemcpyAsync, memory[to], memory[from], bytes + 1, stream);
	count_copies(1, "default", bytes + 1, "async");
	ran(from, to, bytes + 1);
}

static void by_direction(void)
{
	DRIVER(cuMemcpyHtoD_v2, memory[DEVICE], pageable, 1000);
	count_copies(1, "H2D", 1000, "sync");
	ran(PAGEABLE, DEVICE, 1000);
	DRIVER(cuMemcpyDtoH_v2, pageable, memory[DEVICE], 1001);
	count_copies(1, "D2H", 1001, "sync");
	ran(DEVICE, PAGEABLE, 1001);
	DRIVER(cuMemcpyHtoDAsync_v2, memory[DEVICE], (void *)memory[PINNED], ROOM, stream);
	count_copies(1, "H2D", ROOM, "async");
	ran(PINNED, DEVICE, ROOM);
	DRIVER(cuMemcpyDtoHAsync_v2, (void *)memory[PINNED], memory[DEVICE], ROOM, stream);
	count_copies(1, "D2H", ROOM, "async");
	ran(DEVICE, PINNED, ROOM);
}

static void sets(void)
{
	DRIVER(cuMemsetD8_v2, memory[DEVICE], 1, 777);
	count_sets(1, 777);
	count_ran_sets(1, 777, "device");
	DRIVER(cuMemsetD32Async, memory[DEVICE], 1, 1000, stream);
	count_sets(1, 4000);
	count_ran_sets(1, 4000, "device");
	DRIVER(cuMemsetD8_v2, memory[MANAGED], 1, 555);
	count_sets(1, 555);
	count_ran_sets(1, 555, "managed");
}

int main(int argc, char **argv)
{
	long times = sample_number(argc, argv, 1, 1);
	void *pinned;

	sample_context();
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	DRIVER(cuMemAllocHost_v2, &pinned, ROOM);
	count_alloc("host", ROOM);
	DRIVER(cuMemAlloc_v2, &memory[DEVICE], ROOM);
	count_alloc("device", ROOM);
	DRIVER(cuMemAllocManaged, &memory[MANAGED], ROOM, CU_MEM_ATTACH_GLOBAL);
	count_alloc("managed", ROOM);
	memory[PAGEABLE] = (CUdeviceptr)pageable;
	memory[PINNED] = (CUdeviceptr)pinned;
	for (long i = 0; i < times; i++) {
		for (int from = 0; from < PLACES; from++) {
			for (int to = 0; to < PLACES; to++) {
				/* The host's own copies may never come to the device. */
				if (from != to && (from >= DEVICE || to >= DEVICE))
					between((enum place)from, (enum place)to);
			}
		}
		by_direction();
		sets();
	}
	DRIVER(cuStreamSynchronize, stream);
	return sample_end();
}
