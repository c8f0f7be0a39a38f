# SPDX-License-Identifier: MIT
# make agent-abi          our CUPTI headers against the real ones, where a toolkit has them

agent-abi:
	tests/agent/abi.py '$(CC)'

unit: agent-abi

.PHONY: agent-abi
