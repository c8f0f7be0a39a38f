# SPDX-License-Identifier: MIT
# make agent-abi          our CUPTI headers against the real ones, where a toolkit has them
# make agent-tests        the agent's library in programs of the simulated driver
# make test-agent         all of it, also with sanitizers
# make test-agent-live    the same with cuscope's side of it, in other processes

AGENT_T      := tests/agent
AGENT_T_LIB  := $(AGENT_SRC:%.c=$(B)/agent-tests/%.o) $(AGENT_ASM:%.S=$(B)/agent-tests/%.o)
AGENT_T_HOST := $(AGENT_T:%=$(B)/%)/host.o $(AGENT_T:%=$(B)/%)/work.o
AGENT_T_BIN  := $(patsubst %.c,$(B)/%,$(wildcard $(AGENT_T)/test_*.c))

# The library's code as a part of the test programs, sanitized as they are.
$(AGENT_SRC:%.c=$(B)/agent-tests/%.o): $(B)/agent-tests/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -c -o $@ $<

$(AGENT_ASM:%.S=$(B)/agent-tests/%.o): $(B)/agent-tests/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -c -o $@ $<

$(B)/$(AGENT_T)/host.o $(B)/$(AGENT_T)/work.o: CFLAGS += -Itests

$(AGENT_T_BIN): %: %.o $(AGENT_T_HOST) $(AGENT_T_LIB)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcmocka -ldl -pthread $(AGENT_T_LIBS)

$(B)/$(AGENT_T)/throws.o: $(AGENT_T)/throws.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -Wall -Wextra -Werror $(SANITIZE) -c -o $@ $<

$(B)/$(AGENT_T)/test_probes_flow: $(B)/$(AGENT_T)/throws.o
$(B)/$(AGENT_T)/test_probes_flow: AGENT_T_LIBS := -lstdc++
$(B)/$(AGENT_T)/test_cubins: AGENT_T_LIBS := -rdynamic

# Of the simulated libraries, what they load: with a sanitizer all of it is built anew.
agent-tests-built: $(addprefix $(B)/simcuda/,push/libcuda.so.1 libcudart.so.13 libcupti.so.13 13.3/libcupti.so.13 libcupti.so.12 libcupti.so.11.0 libnvperf_host.so) \
		$(AGENT_SO) $(AGENT_T_BIN)

agent-tests: agent-tests-built
	AGENT_ROUNDS=$(AGENT_ROUNDS) $(AGENT_T)/run $(B)

agent-abi:
	$(AGENT_T)/abi.py '$(CC)'

# The tests three times: as they are, with ASan and UBSan, with TSan.
test-agent:
	+@MAKE='$(MAKE)' $(AGENT_T)/all $(B) '$(CC)'

$(B)/tests/agent/live: $(B)/tests/agent/live.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

test-agent-live: $(B)/tests/agent/live programs simcuda
	tests/unit/run.sh $<

.PHONY: agent-abi agent-tests agent-tests-built test-agent test-agent-live
