# SPDX-License-Identifier: MIT
# The library that goes into targets: $(B)/libcuscope-agent.so, of libc alone.

AGENT_SRC := $(sort $(wildcard src/agent/lib/*.c))
AGENT_OBJ := $(AGENT_SRC:%.c=$(B)/agent/%.o)
AGENT_SO  := $(B)/libcuscope-agent.so

# glibc before 2.34 has dlopen and threads in libraries of their own, which later ones keep, empty.
# Sanitizers bring what they need with the program.
AGENT_LIBS := $(if $(SANITIZE),,-Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,-z,defs)

AGENT_CFLAGS = $(filter-out -pthread,$(CFLAGS)) -fPIC -fvisibility=hidden -ffunction-sections

$(AGENT_OBJ): $(B)/agent/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -c -o $@ $<

$(AGENT_SO): $(AGENT_OBJ)
	$(CC) $(AGENT_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,--gc-sections \
		-Wl,--build-id -o $@ $^ $(AGENT_LIBS)

agent: $(AGENT_SO)

all: $(AGENT_SO)

.PHONY: agent
