# SPDX-License-Identifier: MIT
# The library that goes into targets: $(B)/libcuscope-agent.so, of libc alone.

AGENT_SRC := $(sort $(wildcard src/agent/lib/*.c))
AGENT_ASM := src/agent/lib/thunks.S
AGENT_OBJ := $(AGENT_SRC:%.c=$(B)/agent/%.o) $(AGENT_ASM:%.S=$(B)/agent/%.o)
AGENT_SO  := $(B)/libcuscope-agent.so

# glibc before 2.34 has dlopen and threads in libraries of their own, which later ones keep, empty.
AGENT_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,-z,defs

# Targets are never sanitized, whatever this build is.
AGENT_CFLAGS = $(HARDEN) $(filter-out -pthread $(SANITIZE),$(CFLAGS)) -fPIC -fvisibility=hidden

# See `own` in that file. Only there: before glibc 2.40 such an access may write over vector registers.
ifeq ($(ARCH),x86_64)
$(B)/agent/src/agent/lib/probe_threads.o: AGENT_CFLAGS += -mtls-dialect=gnu2
endif

$(AGENT_SRC:%.c=$(B)/agent/%.o): $(B)/agent/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -c -o $@ $<

$(AGENT_ASM:%.S=$(B)/agent/%.o): $(B)/agent/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -c -o $@ $<

$(AGENT_SO): $(AGENT_OBJ)
	$(CC) $(AGENT_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,--build-id \
		-o $@ $^ $(AGENT_LIBS)

# Without what only a debugger wants, as it is in cuscope. The build id stays: by it cuscope knows the library beside it
# as the same one.
$(B)/agent/embedded.so: $(AGENT_SO)
	objcopy --strip-unneeded $< $@

$(B)/agent/embedded.o: src/agent/embedded.S $(B)/agent/embedded.so
	$(CC) $(HARDEN) -DAGENT_LIBRARY='"$(B)/agent/embedded.so"' -c -o $@ $<

CARRIED += $(B)/agent/embedded.o

# What a borrowed thread runs.
$(B)/src/agent/inject_code.o: src/agent/inject_code.S
	@mkdir -p $(@D)
	$(CC) $(HARDEN) $(CFLAGS) -c -o $@ $<

CARRIED += $(B)/src/agent/inject_code.o

agent: $(AGENT_SO)

objects: $(AGENT_OBJ) $(B)/src/agent/inject_code.o

.PHONY: agent
