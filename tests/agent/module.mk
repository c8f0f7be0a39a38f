# SPDX-License-Identifier: MIT
# make agent-abi          our CUPTI headers against the real ones, where a toolkit has them
# make test-agent         the agent and cuscope's side of it, in programs on the simulated driver

agent-abi:
	tests/agent/abi.py '$(CC)'

unit: agent-abi

$(B)/tests/agent/live: $(B)/tests/agent/live.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

test-agent: $(B)/tests/agent/live programs simcuda
	tests/unit/run.sh $<

.PHONY: agent-abi test-agent
