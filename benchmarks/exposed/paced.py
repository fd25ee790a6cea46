"""A small model that behaves in time as a large one, as an external module of verl (`VERL_USE_EXTERNAL_MODULES=paced`).

A model of a million parameters decodes and trains far too fast for a judge to weigh in a step what it weighs on a
cluster, and other programs on the machine make its times uneven. So a decoding step lasts at least `PACED_TOKEN_S`, and
training at least `PACED_TRAIN_S`, from the moment when the step's rows are there to the end of the update. What really
takes longer takes longer. verl looks for a step's rows every 2 s; here every `PACED_POLL_S`.

The lab's responses are short and often equal, and an equal trace is not judged twice by pv-rl. So tokens are drawn at
random: at least 4, then each is the last with probability `PACED_END`, which keeps a response as memoryless as an
engine is that goes on with one that was interrupted.
"""

from __future__ import annotations

import functools
import os
import time

from wrapt import register_post_import_hook

SHORTEST = 4
CATCH_UP_S = 1.0
"""An engine that is behind its pace by less than this makes up for it."""


def setting(name: str) -> float:
    return float(os.environ[f"PACED_{name}"])


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def pace_decoding(module) -> None:
    original, token_s = module.EngineLoop._step, setting("TOKEN_S")

    @functools.wraps(original)
    def _step(self):
        begin, due = time.monotonic(), getattr(self, "_paced_due", 0.0)
        self._paced_due = (due if begin - due < CATCH_UP_S else begin) + token_s
        original(self)
        sleep_until(self._paced_due)

    module.EngineLoop._step = _step


def draw_tokens(module) -> None:
    import torch

    from pv_lab.tokenizer import EOS, VOCABULARY

    words = torch.tensor([token for word, token in VOCABULARY.items() if any(map(str.isdigit, word))])
    last, original = setting("END"), module.Rows.next_uniform

    def next_uniform(self):
        drawn = original(self)
        return torch.where(self.count < SHORTEST - 1, last + (1 - last) * drawn, drawn)

    def choose(log_probs, greedy, uniform):
        place = ((uniform - last) / (1 - last) * len(words)).long().clamp(0, len(words) - 1)
        return torch.where(uniform < last, VOCABULARY[EOS], words[place])

    module.Rows.next_uniform, module.choose = next_uniform, choose


def pace_training(module) -> None:
    trainer, train_s = module.PPOTrainer, setting("TRAIN_S")
    balance, update = trainer._balance_batch, trainer._update_actor

    @functools.wraps(balance)
    def _balance_batch(self, *arguments, **options):
        self._paced_begin = time.monotonic()
        return balance(self, *arguments, **options)

    @functools.wraps(update)
    def _update_actor(self, *arguments, **options):
        batch = update(self, *arguments, **options)
        sleep_until(self._paced_begin + train_s)
        return batch

    trainer._balance_batch, trainer._update_actor = _balance_batch, _update_actor


def pace_polling(module) -> None:
    original = module.ReplayBuffer.__init__

    @functools.wraps(original)
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        self.poll_interval = setting("POLL_S")

    module.ReplayBuffer.__init__ = __init__


register_post_import_hook(pace_decoding, "pv_cpu.rollout.loop")
register_post_import_hook(draw_tokens, "pv_cpu.rollout.engine")
register_post_import_hook(pace_training, "verl.trainer.ppo.v1.trainer_base")
register_post_import_hook(pace_polling, "verl.trainer.ppo.v1.replay_buffer")
