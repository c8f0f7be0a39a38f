# SPDX-License-Identifier: MIT
# A small Llama that answers, token by token, as a server without batching does.
import time
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16,
                     num_key_value_heads=8, max_position_embeddings=2048)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()


def answer(prompt):
    return model.generate(prompt, max_new_tokens=100, do_sample=True, pad_token_id=0)


def serve(until):
    while time.time() < until:
        answer(torch.randint(0, 32000, (1, 64), device="cuda"))


serve(time.time() + 33)
