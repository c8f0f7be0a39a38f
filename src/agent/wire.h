/* SPDX-License-Identifier: MIT */
/*
 * What cuscope and the agent, the library inside a target, say to each other.
 *
 * A SOCK_SEQPACKET socket carries a handful of messages by cuscope; that it closes is how each side
 * learns of the other's death. Nothing goes the other way: what a socket brings could be a
 * descriptor of anything, and the last to close that may wait for as long as its sender likes.
 * Where the agent has something to tell, it writes that into memory and rings a bell: of a second
 * pair of sockets it takes away the one byte that cuscope has put there, and cuscope is woken,
 * since there is room again. Records go through memory: a memfd that cuscope makes, seals against
 * shrinking and sends along with its first message. It begins with struct agent_shared; the rest is
 * a ring that both sides map twice in a row, so that no record is ever cut.
 *
 * Producers (any thread of the target) reserve room by moving `head`, write the record, and store
 * its first word, `bytes`, last. The reader stops at a record whose first word is still 0, and
 * leaves zeroes behind. It is root and the target may be anybody's: it believes nothing in here,
 * and copies a record before it looks at it.
 *
 * The agent is compiled with this header alone, and with bpf/wire.h for what is recorded of calls
 * inside the process.
 */
#pragma once

#include <stdint.h>

/* Grows with every change in this file, and in what bpf/wire.h says of cookies and of a call's
 * words. */
#define AGENT_ABI   21
#define AGENT_MAGIC 0x63757363616765ull
/* Of the parts of the memfd. Each begins at the largest page there is (AArch64); the ring's size is
 * a power of two, and no less than that. */
#define AGENT_COUNTS_AT 65536
#define AGENT_RING_AT   (AGENT_COUNTS_AT + AGENT_COUNTS_BYTES)

/* How a started command's agent finds cuscope: "ABI:NAME", a socket in the abstract namespace. */
#define AGENT_ENV "CUSCOPE_AGENT"
/* What a running process's agent is entered by: int (int socket), 0 or a negative errno. */
#define AGENT_ENTER "cuscope_agent_enter"
/* What CUDA_INJECTION64_PATH was before: the agent loads it and calls its InitializeInjection.
 * Empty: nothing. */
#define AGENT_ENV_NEXT "CUSCOPE_INJECTION64_NEXT"

/* What is wanted: bits of agent_message.kinds. */
enum agent_kind {
	AGENT_WANT_KERNELS = 1 << 0,
	AGENT_WANT_COPIES = 1 << 1,
	AGENT_WANT_SETS = 1 << 2,
	AGENT_WANT_SYNC = 1 << 3,
	AGENT_WANT_GRAPHS = 1 << 4, /* graph launches as wholes, without their nodes */
	AGENT_WANT_NVTX = 1 << 5,
	AGENT_WANT_OVERHEAD = 1 << 6,
	AGENT_WANT_ARGUMENTS = 1 << 7, /* of launches: AGENT_CALL carries them */
	AGENT_WANT_NODES = 1 << 8,     /* of graphs, as they are made: AGENT_NODE */
	AGENT_WANT_STALLS = 1 << 9,    /* why kernels wait, in windows by lot: AGENT_STALL */
};

/* ---- messages ------------------------------------------------------------------------------ */

enum agent_message_type {
	/* by cuscope */
	AGENT_HELLO = 1, /* kinds; with it memfd, bell, and libcupti where `cupti` is 1 */
	AGENT_RUN,       /* measure (again); the first one is implied by AGENT_HELLO */
	AGENT_PAUSE,     /* stop, and leave CUPTI: it is to cost nothing until AGENT_RUN */
	AGENT_STOP,      /* the same for good; then the agent closes the socket */
	/* where hello asked for AGENT_PROBES; each is answered before the next is sent
	 */
	AGENT_PROBES_AREA, /* memory for code is to be there, at most AGENT_REACH from `near` */
	AGENT_PROBES_SET,  /* `n` slots; with it a memfd of so many struct agent_slot */
	AGENT_PROBES_TURN, /* slots from `first` on begin to record, or only pass on */
	AGENT_PROBES_GO,   /* no answer: who waits in cuInit (AGENT_PROBES_WAIT) goes on */
};

/* Of hello: calls of diverted functions are recorded, until AGENT_STOP; windows are none of theirs.
 * With `kinds` 0 nothing of CUPTI is looked for: the agent is AGENT_RUNNING at once. */
enum agent_probes_flags {
	AGENT_PROBES = 1 << 0,
	AGENT_PROBES_TICKS = 1 << 1,  /* times are AGENT_CLOCK_TICKS */
	AGENT_PROBES_BEGINS = 1 << 2, /* AGENT_PROBE_BEGUN for every entry */
	AGENT_PROBES_READS = 1 << 3,  /* no filter of the process's is against process_vm_readv */
	AGENT_PROBES_WAIT = 1 << 4,   /* cuInit, where it brought the agent, waits until
	                               * AGENT_PROBES_GO, and AGENT_WAIT_MS at most */
};

#define AGENT_WAIT_MS 2000

/* Of the same length and beginning in each version: so each can refuse all others. */
struct agent_message {
	uint32_t type;
	uint32_t abi;
	union {
		struct {
			uint32_t kinds;
			uint32_t cupti; /* a descriptor of the libcupti to use follows the bell */
			uint32_t flush_ms; /* how often records are asked for, at least */
			uint32_t probes;   /* enum agent_probes_flags */
		};
		struct {
			uint32_t number; /* of a request, from 1 on: see struct agent_answer */
			uint32_t bytes;
			uint64_t near;
		} area;
		struct {
			uint32_t number;
			uint32_t n;
			uint32_t first;
			uint32_t does; /* enum agent_slot_does */
		} slots;
	};
};

_Static_assert(sizeof(struct agent_message) == 24, "the length of all versions");

/* How far code and what it refers to may be from each other: 2 GiB, less the size of a module. */
#define AGENT_REACH ((uint64_t)1750 << 20)

/* Of one process, over all sessions. A slot leads to the same code for good, since a thread may be
 * on its way through it still. */
#define AGENT_AREA_MOST  (16u << 20) /* bytes of code */
#define AGENT_SLOTS_MOST 4096
#define AGENT_AREAS_MOST 128 /* of which the next session is told; others are used once */

enum agent_slot_does {
	AGENT_SLOT_PASSES_ON,
	AGENT_SLOT_ENTRY, /* recorded without its return, which goes to the caller then */
	AGENT_SLOT_CALL,
	/* What ends well is only counted. What does not is recorded, without the time at which it
	 * began; and so is, in full, what cannot be counted, as a thread's first call. */
	AGENT_SLOT_COUNT,
	AGENT_SLOT_DOES
};

/*
 * Calls that were counted: a number for each slot, in as many shares. A thread has a share for
 * itself, and so counts without waiting; threads beyond these have one together. None ever goes
 * back, whoever has the share next. The last share is of children of fork, and theirs: each call of
 * a slot that does not pass on is in there.
 */
#define AGENT_COUNT_SHARES   64
#define AGENT_COUNT_CHILDREN (AGENT_COUNT_SHARES - 1)
#define AGENT_COUNTS_BYTES   (AGENT_COUNT_SHARES * AGENT_SLOTS_MOST * 8)

#define AGENT_STACK_WORDS_MOST    32
#define AGENT_STACK_WORDS_UNKNOWN UINT32_MAX /* the most are copied, as far as they are there */

/* What a diverted function's thunk records, and where it goes on. A slot is set once in a session.
 * One of an earlier session keeps its `original`; all else may be another. */
struct agent_slot {
	uint32_t slot;        /* from 0 on in each process: what records have as their lane */
	uint32_t stack_words; /* of arguments that lie on the stack */
	uint64_t cookie;      /* of bpf/wire.h */
	uint64_t original;    /* the moved code, which lies in an area */
	uint32_t does;        /* enum agent_slot_does, from now on */
	uint32_t begins;      /* AGENT_PROBE_BEGUN for its entries, whatever the session has */
	uint64_t entry;       /* the function's; not 0: walks are asked for, where they are due */
};

/* Code that earlier sessions were given, and which slots lead there. */
struct agent_area {
	uint64_t address;
	uint32_t bytes;
	uint32_t first, n;
	uint32_t reserved;
};

/* To the last request. Texts there are none: `code` is 0 or a negative errno. */
struct agent_answer {
	uint32_t number; /* of the request; written last */
	int32_t code;
	uint64_t area; /* of AGENT_PROBES_AREA: where it begins */
};

/* ---- shared memory ------------------------------------------------------------------------- */

enum agent_state {
	AGENT_STARTING, /* looks for CUPTI, subscribes */
	AGENT_RUNNING,
	AGENT_ENDING, /* measures no more; waits for a call to end, at which CUPTI can be left */
	AGENT_PAUSED, /* CUPTI was left, or keeps still: `leftover` */
	AGENT_OFF,    /* the same, for good */
	AGENT_FAILED, /* the same, and `failure` tells why */
	AGENT_PROBES_ONLY, /* of CUPTI the same; calls of diverted functions go on until AGENT_STOP
	                    */
	AGENT_STATES
};

/*
 * How CUPTI is left. All of this was measured on an H200 with driver 580 and CUPTI 13.0, with one,
 * three and six threads that launch all the time.
 *
 * Without graphs: kinds are disabled and flushed, then an API_EXIT callback calls cuptiFinalize.
 * That was safe 1,200 of 1,200 times, with work in flight, and launches then cost what they did
 * before. Without disabling first, programs with more than one thread got a segmentation fault.
 *
 * With graphs: a CUDA graph that was launched or made while kernels were measured keeps writing
 * times to CUPTI's memory on the GPU. If it is launched between the disabling and cuptiFinalize, or
 * by another thread meanwhile, it writes to freed memory. That is Xid 31 and CUDA error 719 or 700:
 * the program is lost. So CUPTI is not finalized once a graph launch or instantiation was seen.
 * Kinds are disabled, flushed and unsubscribed instead, which was safe all 800 times; one can
 * subscribe again. What stays is 0.3 us a launch and 0.9 us a graph launch.
 *
 * Holding other threads in their callbacks meanwhile does not help: they crash after it.
 *
 * CUPTI_ACTIVITY_KIND_GRAPH_TRACE crashes in cuGraphLaunch when the graph was made before CUPTI
 * came. So AGENT_WANT_GRAPHS is for agents that were there from cuInit on and were never paused;
 * others measure the nodes.
 */
enum agent_leftover {
	AGENT_LEFT_NOTHING,
	AGENT_LEFT_CUPTI,  /* not finalized, since graphs were seen */
	AGENT_LEFT_SHARED, /* not finalized, since other tools may use it */
};

enum agent_clock {
	AGENT_CLOCK_NS,    /* ns of CLOCK_MONOTONIC */
	AGENT_CLOCK_TICKS, /* the processor's own: only cuscope knows how long one is */
};

enum agent_failure {
	AGENT_FINE,
	AGENT_NO_CUDA,       /* libcuda is not there, or says so */
	AGENT_NO_CUPTI,      /* none was found, or none that loads: `text` lists what was tried */
	AGENT_CUPTI_BUSY,    /* another subscriber: a profiler runs, or ran: torch.profiler keeps */
			     /* CUPTI after its end, but with TEARDOWN_CUPTI=1 in the environment */
	AGENT_CUPTI_FOREIGN, /* newer than the driver, or too old for cuscope */
	AGENT_CUPTI_ERROR,   /* `code` is the CUptiResult, `text` the function */
	AGENT_NO_MEMORY,
	AGENT_BAD_HELLO, /* not the ABI of this agent */
};

/* Why a call of a diverted function is not told, or not whole: of agent_shared.probe_lost. */
enum agent_probe_lost {
	AGENT_PROBE_RING,       /* the ring was full */
	AGENT_PROBE_THREADS,    /* no memory for what the thread is in */
	AGENT_PROBE_DEPTH,      /* within AGENT_PROBE_DEPTH_MAX others */
	AGENT_PROBE_REENTRY,    /* made by a signal handler within the recording itself */
	AGENT_PROBE_ENTRY,      /* a return to which no entry is known any more */
	AGENT_PROBE_UNREADABLE, /* the call is told, without words that its plan asks for */
	AGENT_PROBE_TEXT,  /* a text was too long, or could not be read; or lost for the ring */
	AGENT_PROBE_STUCK, /* a thread was recording when the session ended, and did not get on */
	AGENT_PROBE_TOO_FAST, /* an allocation came too fast for its stack; the call is told */
	AGENT_PROBE_LOSTS
};

/* Of agent_shared.head: what is above says who moved it last, which the reader ignores. So places
 * in the ring are counted modulo this. */
#define AGENT_HEAD_BITS       52
#define AGENT_HEAD_MASK       ((1ull << AGENT_HEAD_BITS) - 1)
#define AGENT_PROBE_DEPTH_MAX 64

/* All but `tail` and what is said to be by cuscope is written by the agent. Texts end with a NUL,
 * or the reader cuts them. */
struct agent_shared {
	uint64_t magic;
	uint32_t abi;
	uint32_t state;   /* enum agent_state */
	uint32_t failure; /* enum agent_failure */
	int32_t code;
	uint32_t cupti_version;  /* cuptiGetVersion: 13 for CUDA 11.0.. in its own counting */
	uint32_t driver_version; /* cuDriverGetVersion: 13000 */
	uint64_t ring_bytes;
	uint64_t active_since_ns; /* CLOCK_MONOTONIC; calls that began from here on are reported */
	uint64_t active_until_ns; /* 0: still */
	uint64_t clock_error_ns;  /* of activities' times; 0: CUPTI takes them from our clock */
	/* counts, since the agent came in */
	uint64_t lost_ring;     /* records that found the ring full */
	uint64_t lost_buffers;  /* records that CUPTI dropped */
	uint64_t lost_times;    /* activities with impossible times */
	uint64_t lost_ranges;   /* of NVTX, that were in or beside too many others */
	uint64_t activities;    /* written */
	uint64_t unknown;       /* activities of kinds that were not asked for */
	uint32_t leftover;      /* enum agent_leftover, with AGENT_PAUSED and AGENT_OFF */
	uint32_t nodes_instead; /* AGENT_WANT_GRAPHS could not be: nodes are measured */
	uint64_t pause_ns;      /* how long leaving CUPTI took, the last time */
	uint64_t probe_lost[AGENT_PROBE_LOSTS];
	uint64_t name_offset; /* by cuscope: of the name's pointer in a kernel's handle; 0: none */
	/* by cuscope, before hello: what makes the process's CLOCK_MONOTONIC that of the machine,
	 * from which it differs in a time namespace */
	int64_t clock_offset_ns;
	/* by cuscope, before hello: how often walks are due, as struct wire_due has it */
	uint64_t walk_ns;
	uint32_t walk_one_in, walk_reserved;
	uint32_t probe_clock;   /* enum agent_clock: what struct agent_probed counts in */
	uint32_t probe_threads; /* whose state is kept */
	uint32_t probe_shares;  /* that threads may have counted in: all before this one */
	uint32_t reserved;
	/* Where the thunk of slot 0 is, how far from each other they are, and for how many slots
	 * there is room; written last. 0 of them: this agent records no calls, or cannot, and
	 * `answer.code` tells why before there is a request. */
	uint64_t probe_thunks;
	uint32_t probe_thunk_bytes;
	uint32_t probe_slots;
	/* Of earlier sessions, written before that: their slots lie before this one, and this many
	 * areas are theirs. */
	uint32_t probe_used;
	uint32_t probe_areas;
	struct agent_area probe_area[AGENT_AREAS_MOST];
	struct agent_answer answer;
	char text[512];             /* for AGENT_FAILED: what was tried, for the user */
	char cupti_path[512];       /* of the libcupti in use */
	_Alignas(64) uint64_t head; /* bytes ever reserved; above AGENT_HEAD_BITS who did it last */
	_Alignas(64) uint64_t tail; /* bytes ever read; written by cuscope */
};

_Static_assert(sizeof(struct agent_shared) <= AGENT_COUNTS_AT, "it fits before the counts");

#define AGENT_RECORD_MAX 4160 /* bytes; the longest are texts of calls */

/* ---- records ------------------------------------------------------------------------------- */

enum agent_record_type {
	AGENT_PAD = 1, /* nothing */
	AGENT_NAME,    /* of kernels and functions, each once: by number, from 1 */
	AGENT_SHAPE,   /* a kernel with its grid, by number */
	AGENT_LANE,    /* device, context, stream, by number */
	AGENT_CALL,
	AGENT_KERNEL,
	AGENT_COPY,
	AGENT_SET,
	AGENT_GRAPH,
	AGENT_SYNC,
	AGENT_OVERHEAD,
	AGENT_NVTX,
	AGENT_PROBED,      /* a call of a diverted function that ended, or will not return */
	AGENT_PROBE_BEGUN, /* its entry, where begin and end are asked for apart */
	AGENT_PROBE_NAME,  /* a text of a call that comes after it */
	AGENT_NODE,
	AGENT_STALL,
	AGENT_STALL_WINDOW,
	AGENT_STALLS_TOLD,
	AGENT_RECORD_TYPES
};

/* Times are ns of CLOCK_MONOTONIC, tids those of the target's own pid namespace. */
struct agent_head {
	uint32_t bytes; /* of the whole record, a multiple of 8; 0: not there yet */
	uint8_t type;
	uint8_t flags;
	uint16_t lane; /* of activities; a number may be given anew, to another lane */
};

struct agent_name {
	struct agent_head head;
	uint32_t number;
	char text[]; /* with its NUL; mangled, if it is a kernel's */
};

struct agent_shape {
	struct agent_head head;
	uint32_t number; /* may be given anew */
	uint32_t name;
	uint32_t grid[3], block[3];
	uint32_t registers;
	uint32_t shmem_static, shmem_dynamic;
	uint32_t reserved;
};

/* A stream of a context on a device, which activities refer to by number. */
struct agent_lane {
	struct agent_head head;
	uint32_t device, context, stream;
	uint32_t reserved;
};

#define AGENT_CALL_WORDS   24
#define AGENT_CALL_RUNTIME 1 /* flags: of the runtime, else of the driver */
#define AGENT_CALL_BLOB    2 /* the last words are the struct that an argument points to */

/* A launch, copy, set or graph launch that returned: what activities' correlation stands for. Of a
 * launch that is recorded by a probe AGENT_PROBED says it. */
struct agent_call {
	struct agent_head head;
	uint32_t correlation;
	uint32_t tid;
	uint64_t begin_ns, end_ns;
	uint32_t name; /* of the function, as it is exported */
	int32_t result;
	uint32_t arguments; /* words that are arguments, in the order of the C prototype; */
	uint32_t blob; /* words after them: what the struct of a launch (CUlaunchConfig) holds */
	uint64_t word[];
};

/* 32 bytes: the record that there are millions of. */
struct agent_kernel {
	struct agent_head head;
	uint64_t begin_ns;
	uint32_t duration_ns; /* longer ones come as a struct agent_kernel_long */
	uint32_t correlation;
	uint32_t shape;
	uint32_t reserved;
};

#define AGENT_KERNEL_LONG 1 /* flags */

/* Of a graph's node, or longer than 4 s. */
struct agent_kernel_long {
	struct agent_kernel kernel; /* duration_ns: 0 */
	uint64_t end_ns;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t reserved;
};

/* AGENT_COPY and AGENT_SET (only `destination` of the memory kinds). */
struct agent_copy {
	struct agent_head head;
	uint64_t begin_ns, end_ns;
	uint64_t bytes;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t correlation;
	uint8_t kind;                /* CUpti_ActivityMemcpyKind */
	uint8_t source, destination; /* CUpti_ActivityMemoryKind */
	uint8_t reserved;
	uint32_t peer_device;
};

struct agent_graph {
	struct agent_head head;
	uint64_t begin_ns, end_ns;
	uint32_t correlation;
	uint32_t graph;
};

/* A node of a graph was made as a copy of another. The numbers are those that activities have. Of
 * others a probe tells, with their stacks: WIRE_NODE of bpf/wire.h, and WIRE_WALK_FUNCTION. */
struct agent_node {
	struct agent_head head;
	uint64_t node;
	uint64_t original;
};

/* In a window instructions of kernels were sampled: how often one was found waiting, and for what.
 * Several records of one window are added up. */
struct agent_stall {
	struct agent_head head;
	uint64_t begin_ns, end_ns; /* of the window */
	uint64_t cubin;            /* the CRC of the kernel's */
	uint64_t offset;           /* of the instruction, from the kernel's begin; */
	uint64_t samples;
	uint32_t kernel; /* number of its name */
	uint32_t reason; /* of the reason's, as "long_scoreboard" */
	uint32_t file;   /* of the path's of the source; 0: not known */
	uint32_t line;
};

#define AGENT_STALL_ANYWHERE UINT64_MAX /* `offset`: of many */

/* After the others of its window, or of a part of them; not so in each case. */
struct agent_stall_window {
	struct agent_head head;
	uint64_t begin_ns, end_ns;
	uint64_t cost_ns; /* that CUPTI's calls took, the window itself left out */
	uint64_t samples; /* all, */
	uint64_t dropped; /* and among them those that are told of by no record */
	uint64_t foreign; /* nor these, of kernels that are not the program's */
};

enum agent_stalls_what {
	AGENT_STALLS_BEGUN,   /* a context is enabled; how long that took in ns, bytes of its
	                       * device that CUPTI takes */
	AGENT_STALLS_OLD,     /* cuptiGetVersion */
	AGENT_STALLS_MEMORY,  /* bytes that are free, bytes that should be */
	AGENT_STALLS_REFUSED, /* code; enum agent_stalls_in, the attribute */
	AGENT_STALLS_FULL,    /* the hardware's buffer */
	AGENT_STALLS_NAMES,   /* how many texts of CUPTI's there are, which nobody may free */
	AGENT_STALLS_SLOW,    /* how long a call took in ns; enum agent_stalls_in: it is given up */
	AGENT_STALLS_CALLS,   /* none could begin: a call of the driver's or a capture was under way
	                       */
	AGENT_STALLS_WORK,    /* none could end: the GPU was not done with what it had */
	AGENT_STALLS_WHATS
};

enum agent_stalls_in {
	AGENT_STALLS_IN_DRIVER,
	AGENT_STALLS_IN_ENABLING,
	AGENT_STALLS_IN_REASONS,
	AGENT_STALLS_IN_CONFIGURING,
	AGENT_STALLS_IN_STARTING,
	AGENT_STALLS_IN_STOPPING,
	AGENT_STALLS_IN_GETTING,
	AGENT_STALLS_INS
};

/* How sampling goes; of each thing once a session. */
struct agent_stalls_told {
	struct agent_head head;
	uint32_t what; /* enum agent_stalls_what */
	uint32_t code; /* CUptiResult */
	uint64_t first, second;
	uint64_t time_ns;
};

/* Time that is the agent's own, in a call of the program's: kinds of AGENT_OVERHEAD that CUPTI does
 * not have. Told whatever was asked for. */
#define AGENT_OWN_LOADING 0x80000001u /* in cuInit: CUPTI is looked for, loaded and begun with */
#define AGENT_OWN_LEAVING 0x80000002u /* cuptiFinalize */
#define AGENT_OWN_WAITING 0x80000003u /* in cuInit: for AGENT_PROBES_GO */

/* AGENT_SYNC: CUpti_ActivitySynchronizationType. AGENT_OVERHEAD: CUpti_ActivityOverheadKind. */
struct agent_wait {
	struct agent_head head;
	uint64_t begin_ns, end_ns;
	uint32_t correlation; /* 0: not known */
	uint32_t kind;
	uint32_t context, stream;
	uint32_t event;
	uint32_t tid; /* AGENT_OVERHEAD; 0: of no thread */
};

enum agent_nvtx_kind { AGENT_NVTX_PUSHPOP, AGENT_NVTX_STARTEND, AGENT_NVTX_MARK };

#define AGENT_NVTX_TEXT 256 /* longer names are cut */

/* A range that ended, or a mark. */
struct agent_nvtx {
	struct agent_head head; /* flags: enum agent_nvtx_kind */
	uint64_t begin_ns, end_ns;
	uint32_t tid;
	uint32_t depth;
	uint32_t domain;   /* number of an AGENT_NAME; 0: the default domain */
	uint32_t category; /* the program's own number; 0: none */
	uint32_t color;    /* alpha, red, green, blue, a byte each, blue the lowest; 0: none */
	char text[];       /* with its NUL */
};

/* AGENT_PROBED and AGENT_PROBE_BEGUN. Words have the places of struct wire_call's. */
struct agent_probed {
	struct agent_head head; /* flags: of enum wire_flags; lane: the slot */
	uint64_t begin, end;    /* by agent_shared.probe_clock; of AGENT_PROBE_BEGUN equal */
	uint32_t tid;
	int32_t result;
	uint32_t depth;       /* with WIRE_WALKED, when it is 0, the walk's number */
	uint32_t place;       /* wire_place */
	uint32_t correlation; /* of the kernel that it launched, as of AGENT_CALL; 0: not known */
	uint32_t reserved;
	uint64_t word[];
};

/* As struct wire_name. */
struct agent_probe_name {
	struct agent_head head; /* flags: WIRE_TRUNCATED; lane: the slot */
	uint64_t begin;         /* of its call */
	uint64_t key;
	uint64_t from; /* its address; the text is empty where it could not be read */
	uint32_t tid;
	uint32_t source; /* enum wire_name_source */
	char text[];     /* with its NUL */
};

_Static_assert(sizeof(struct agent_head) == 8, "layout");
_Static_assert(sizeof(struct agent_probed) == 48, "layout");
_Static_assert(sizeof(struct agent_kernel) == 32, "layout");
