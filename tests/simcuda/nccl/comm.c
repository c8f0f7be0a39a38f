// SPDX-License-Identifier: MIT
#include "comm.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MAGIC   0x0280028002800280ull
#define EXPORT  __attribute__((visibility("default")))
#define PATIENT 60 /* seconds for which a rank waits for the others to be made */

struct ncclComm *comms;
pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ull ^ (hash >> 29);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static bool wait_for(const uint32_t *word, uint32_t least)
{
	for (int i = 0; i < PATIENT * 1000; i++, nap())
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) >= least)
			return true;
	return false;
}

static struct shared *shared_open(const char *path)
{
	struct shared *shared = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && !ftruncate(fd, sizeof(*shared)))
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return shared == MAP_FAILED ? NULL : shared;
}

static int current_device(void)
{
	CUresult (*get)(CUdevice *) = dlsym(RTLD_DEFAULT, "cuCtxGetDevice");
	void *driver = get ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	CUdevice device = 0;

	if (!get && driver)
		get = (CUresult(*)(CUdevice *))dlsym(driver, "cuCtxGetDevice");
	if (get)
		get(&device);
	return device;
}

const char *comm_folder(void)
{
	const char *folder = getenv("SIMNCCL_DIR");

	return folder ? folder : "/dev/shm";
}

static ncclResult_t comm_make(ncclComm_t *made, int ranks, uint64_t hash, uint64_t magic, int rank)
{
	struct ncclComm *comm;
	struct shared_rank *own;

	if (ranks < 1 || ranks > PEERS_MAX || rank < 0 || rank >= ranks)
		return ncclInvalidArgument;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return ncclSystemError;
	snprintf(comm->path, sizeof(comm->path), "%s/" COMM_FILE "%016llx", comm_folder(),
	         (unsigned long long)hash);
	comm->shared = shared_open(comm->path);
	if (!comm->shared) {
		free(comm);
		return ncclSystemError;
	}
	comm->magic_at_begin = MAGIC;
	comm->magic = magic;
	comm->hash = hash;
	comm->rank = rank;
	comm->ranks = ranks;
	comm->device = comm->nvml_device = current_device();
	comm->shared->magic = magic;
	comm->shared->hash = hash;
	own = &comm->shared->of[rank];
	own->pid = getpid();
	own->device = comm->device;
	gethostname(own->host, sizeof(own->host) - 1);
	comm->shared->size = (uint32_t)ranks;
	__atomic_store_n(&own->there, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&comm->shared->peers.here, 1, __ATOMIC_ACQ_REL);
	if (!wait_for(&comm->shared->peers.here, (uint32_t)ranks))
		return ncclSystemError;
	pthread_mutex_lock(&comms_lock);
	comm->next = comms;
	comms = comm;
	pthread_mutex_unlock(&comms_lock);
	ras_begin();
	*made = comm;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	return getrandom(id, sizeof(*id), 0) == (ssize_t)sizeof(*id) ? ncclSuccess
	                                                             : ncclSystemError;
}

static ncclResult_t comm_init(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank)
{
	uint64_t hash = 0, word, magic;

	for (size_t i = 0; i < sizeof(*id); i += sizeof(word)) {
		memcpy(&word, id->internal + i, sizeof(word));
		hash = mix(hash, word);
	}
	memcpy(&magic, id->internal, sizeof(magic));
	return comm_make(comm, ranks, hash, magic, rank);
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return comm_init(comm, ranks, &id, rank);
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
	(void)config;
	return comm_init(comm, ranks, &id, rank);
}

/* A rank of a process that has all of them: each waits for the others. */
struct one_of_all {
	pthread_t thread;
	ncclComm_t made;
	ncclResult_t result;
	uint64_t hash;
	int ranks, rank;
};

static void *one_make(void *data)
{
	struct one_of_all *one = data;

	one->result = comm_make(&one->made, one->ranks, one->hash, one->hash, one->rank);
	return NULL;
}

/* Devices are those of the threads: nothing of what is simulated depends on them. */
EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *made, int n, const int *devices)
{
	struct one_of_all all[PEERS_MAX];
	ncclResult_t result = ncclSuccess;
	uint64_t hash;

	(void)devices;
	if (n < 1 || n > PEERS_MAX || getrandom(&hash, sizeof(hash), 0) != sizeof(hash))
		return ncclInvalidArgument;
	for (int i = 0; i < n; i++) {
		all[i] = (struct one_of_all){ .hash = hash, .ranks = n, .rank = i };
		if (pthread_create(&all[i].thread, NULL, one_make, &all[i]))
			return ncclSystemError;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(all[i].thread, NULL);
		made[i] = all[i].made;
		if (all[i].result != ncclSuccess)
			result = all[i].result;
	}
	return result;
}

/* Ranks of one color, by their keys, then by their ranks. */
EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                  ncclConfig_t *config)
{
	struct shared_rank *of = comm->shared->of, *own = &of[comm->rank];
	uint32_t number = ++comm->n_splits;
	int ranks = 0, rank = 0;

	(void)config;
	own->color = color;
	own->key = key;
	__atomic_store_n(&own->splits, number, __ATOMIC_RELEASE);
	for (int i = 0; i < comm->ranks; i++) {
		if (!wait_for(&of[i].splits, number))
			return ncclSystemError;
		if (of[i].color != color)
			continue;
		ranks++;
		rank += of[i].key < key || (of[i].key == key && i < comm->rank);
	}
	*made = NULL;
	if (color < 0)
		return ncclSuccess;
	return comm_make(made, ranks, mix(mix(comm->hash, number), (uint32_t)color), comm->magic,
	                 rank);
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	(void)comm;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	struct ncclComm **at;

	pthread_mutex_lock(&comms_lock);
	for (at = &comms; *at && *at != comm; at = &(*at)->next)
		;
	if (*at)
		*at = comm->next;
	pthread_mutex_unlock(&comms_lock);
	if (__atomic_add_fetch(&comm->shared->left, 1, __ATOMIC_ACQ_REL) == comm->shared->size)
		unlink(comm->path);
	munmap(comm->shared, sizeof(*comm->shared));
	free(comm);
	return ncclSuccess;
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return ncclCommDestroy(comm);
}
