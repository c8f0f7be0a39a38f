// SPDX-License-Identifier: MIT
/* Virtual memory management: address ranges, physical memory, and the mapping of one to
 * the other. */
#include <sys/mman.h>
#include <unistd.h>

#include "block.h"

#define GRANULARITY ((size_t)2 << 20)

/* Physical memory: an anonymous file, so that it can be mapped more than once. */
struct physical {
	struct handle handle;
	int fd;
	size_t bytes;
	unsigned int holders; /* the handle and each mapping: guarded by sim_lock */
};

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = (struct physical *)(uintptr_t)handle;
	return handle_is(physical, HANDLE_PHYSICAL) ? physical : NULL;
}

static void physical_put(struct physical *physical)
{
	sim_enter();
	bool last = --physical->holders == 0;
	sim_leave();
	if (!last)
		return;
	device_memory_uncount(physical->bytes);
	close(physical->fd);
	handle_free(physical, HANDLE_PHYSICAL);
}

static CUresult granularity(size_t *bytes)
{
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = GRANULARITY;
	return CUDA_SUCCESS;
}

static CUresult physical_create(CUmemGenericAllocationHandle *handle, size_t bytes)
{
	if (!handle || bytes == 0 || bytes % GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_count(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct physical *physical = handle_new(HANDLE_PHYSICAL, sizeof(*physical));
	int fd = memfd_create("simcuda", MFD_CLOEXEC);
	if (!physical || fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
		device_memory_uncount(bytes);
		if (fd >= 0)
			close(fd);
		if (physical)
			handle_free(physical, HANDLE_PHYSICAL);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	physical->fd = fd;
	physical->bytes = bytes;
	physical->holders = 1;
	*handle = (uintptr_t)physical;
	return CUDA_SUCCESS;
}

static CUresult physical_release(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = physical_of(handle);
	if (!physical)
		return CUDA_ERROR_INVALID_VALUE;
	handle_close(physical);
	physical_put(physical);
	return CUDA_SUCCESS;
}

static CUresult range_reserve(CUdeviceptr *address, size_t bytes, size_t alignment)
{
	if (!address || bytes == 0 || bytes % GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	/* Aligned by taking more than is needed and giving the ends back. */
	char *room = mmap(NULL, bytes + alignment, PROT_NONE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t start = ((uint64_t)room + alignment - 1) & ~(uint64_t)(alignment - 1);
	size_t before = start - (uint64_t)room;
	if (before)
		munmap(room, before);
	if (alignment > before)
		munmap((char *)start + bytes, alignment - before);
	struct block block = { .start = start, .bytes = bytes, .kind = BLOCK_RESERVED };
	if (!block_add(&block)) {
		munmap((void *)start, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = start;
	return CUDA_SUCCESS;
}

static CUresult range_free(CUdeviceptr address, size_t bytes)
{
	struct block block;
	if (!block_find(address, bytes, BLOCK_RESERVED, &block) || block.start != address ||
	    block.bytes != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block_take(address, BLOCK_RESERVED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)address, bytes);
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle)
{
	struct block reserved;
	struct physical *physical = physical_of(handle);
	if (!physical || bytes == 0 || bytes % GRANULARITY != 0 || offset > physical->bytes ||
	    bytes > physical->bytes - offset ||
	    !block_find(address, bytes, BLOCK_RESERVED, &reserved))
		return CUDA_ERROR_INVALID_VALUE;
	/* Of no context: what is mapped stays when a context ends. */
	struct block block = {
		.start = address, .bytes = bytes, .kind = BLOCK_MAPPED, .owner = physical
	};
	if (!block_add(&block))
		return CUDA_ERROR_INVALID_VALUE;
	/* Nothing may touch it before cuMemSetAccess. */
	if (mmap((void *)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd,
	         (off_t)offset) == MAP_FAILED) {
		block_take(address, BLOCK_MAPPED, &block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_enter();
	physical->holders++;
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
	struct block block;
	if (!block_find(address, bytes, BLOCK_MAPPED, &block) || block.start != address ||
	    block.bytes != bytes || !block_take(address, BLOCK_MAPPED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	mmap((void *)address, bytes, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	physical_put(block.owner);
	return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                           size_t count)
{
	struct block block;
	if (!access || count == 0 || !block_find(address, bytes, BLOCK_MAPPED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	int protection = PROT_NONE;
	for (size_t i = 0; i < count; i++) {
		if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			protection |= PROT_READ;
		else if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			protection |= PROT_READ | PROT_WRITE;
	}
	return mprotect((void *)address, bytes, protection) == 0 ? CUDA_SUCCESS
	                                                         : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemGetAllocationGranularity,
    (size_t *, bytes, const CUmemAllocationProp *, properties, CUmemAllocationGranularity_flags,
     option),
    granularity(bytes))
API(cuMemCreate,
    (CUmemGenericAllocationHandle *, handle, size_t, bytes, const CUmemAllocationProp *, properties,
     unsigned long long, flags),
    physical_create(handle, bytes))
API(cuMemRelease, (CUmemGenericAllocationHandle, handle), physical_release(handle))
API(cuMemAddressReserve,
    (CUdeviceptr *, address, size_t, bytes, size_t, alignment, CUdeviceptr, at, unsigned long long,
     flags),
    range_reserve(address, bytes, alignment))
API(cuMemAddressFree, (CUdeviceptr, address, size_t, bytes), range_free(address, bytes))
API(cuMemMap,
    (CUdeviceptr, address, size_t, bytes, size_t, offset, CUmemGenericAllocationHandle, handle,
     unsigned long long, flags),
    map(address, bytes, offset, handle))
API(cuMemUnmap, (CUdeviceptr, address, size_t, bytes), unmap(address, bytes))
API(cuMemSetAccess,
    (CUdeviceptr, address, size_t, bytes, const CUmemAccessDesc *, access, size_t, count),
    set_access(address, bytes, access, count))
