# SPDX-License-Identifier: MIT
# Reinforcement learning: a small policy on the GPU, an environment in Python on the CPU.
import math
import random
import time
import torch
policy = torch.nn.Sequential(torch.nn.Linear(4, 128), torch.nn.Tanh(), torch.nn.Linear(128, 2)).cuda()
optimizer = torch.optim.Adam(policy.parameters(), 0.001)


class Cart:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        return self.s

    def step(self, action):
        x, v, a, w = self.s
        force = 10 if action else -10
        for _ in range(20):
            t = (force + 0.05 * w * w * math.sin(a)) / 1.1
            alpha = (9.8 * math.sin(a) - math.cos(a) * t) / (0.5 * (4 / 3 - 0.1 * math.cos(a) ** 2 / 1.1))
            acc = t - 0.05 * alpha * math.cos(a) / 1.1
            x += 0.001 * v
            v += 0.001 * acc
            a += 0.001 * w
            w += 0.001 * alpha
        self.s = [x, v, a, w]
        return (self.s, 1.0, abs(x) > 2.4 or abs(a) > 0.21)


def act(state):
    logits = policy(torch.tensor(state, device="cuda"))
    d = torch.distributions.Categorical(logits=logits)
    action = d.sample()
    return (action.item(), d.log_prob(action))


def episode(cart):
    state, logs, total = (cart.reset(), [], 0)
    for _ in range(200):
        action, log = act(state)
        state, reward, done = cart.step(action)
        logs.append(log)
        total += reward
        if done:
            break
    return (logs, total)


def learn(until):
    cart = Cart()
    while time.time() < until:
        logs, total = episode(cart)
        loss = -torch.stack(logs).sum() * total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


learn(time.time() + 28)
