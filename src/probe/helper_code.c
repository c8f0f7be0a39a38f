// SPDX-License-Identifier: MIT
/* Of helper.h: which code of files a process has mapped, as the kernel tells it one by one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe/helper_inside.h"
#include "probe/maps.h"

/* Of linux/fs.h since 6.11. */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

#define PROCMAP_QUERY      _IOWR('f', 17, struct procmap_query)
#define PROCMAP_WRITABLE   0x02
#define PROCMAP_EXECUTABLE 0x04
#define PROCMAP_SHARED     0x08
#define PROCMAP_OR_NEXT    0x10
#define PROCMAP_OF_FILE    0x20

static struct mapping mapping_of(const struct procmap_query *query)
{
	return (struct mapping){
		.start = query->vma_start,
		.end = query->vma_end,
		.offset = query->vma_offset,
		.dev = makedev(query->dev_major, query->dev_minor),
		.inode = query->inode,
		.writable = query->vma_flags & PROCMAP_WRITABLE,
		.executable = true,
		.private = !(query->vma_flags & PROCMAP_SHARED),
	};
}

int64_t helper_code_by(pid_t tid, const struct helper_request *request, char *to)
{
	struct procmap_query query = { .size = sizeof(query),
		                       .query_flags = PROCMAP_EXECUTABLE | PROCMAP_OF_FILE |
		                                      PROCMAP_OR_NEXT };
	size_t have = 0;
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", request->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!(rc = ioctl(fd, PROCMAP_QUERY, &query)) &&
	       have + sizeof(struct mapping) <= HELPER_BYTES) {
		struct mapping mapping = mapping_of(&query);

		/* overlayfs puts the number of a layer above the file's */
		if (!((query.inode ^ request->address) << 16)) {
			memcpy(to + have, &mapping, sizeof(mapping));
			have += sizeof(mapping);
		}
		query.query_addr = query.vma_end;
	}
	rc = rc && errno != ENOENT ? -errno : 0;
	close(fd);
	return rc ? rc : (int64_t)have;
}
