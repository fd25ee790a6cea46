"""OpenRLHF launcher: its command for PPO, GRPO and REINFORCE++, with a weighting of pv-rl (tested with 0.11.2).

python -m pv_trainers.train_openrlhf balanced:0.6 --actor.loss_agg_mode seq-mean-token-mean [its options]
"""

import runpy
import sys

from pv_rl.losses import resolve_mode
from pv_trainers.launch import starting

__all__ = ["main", "weighted_trainer"]


def weighted_trainer(actor_class, mode: str):
    """A Ray actor class like `actor_class` (`PPOTrainer` or `TrainingActor`) that trains with `mode`."""
    import ray

    from pv_trainers.openrlhf import weigh

    class Weighted(actor_class.__ray_metadata__.modified_class.__ray_actor_class__):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            weigh(self.experience_maker, mode)

    return ray.remote(Weighted)


def main() -> None:
    """Take the mode from the command line, and run `openrlhf.cli.train_ppo_ray` with the other arguments."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pv_trainers.train_openrlhf SPEC ARGUMENTS")
    with starting("openrlhf", "ray", install="pip install openrlhf==0.11.2"):
        mode = resolve_mode(sys.argv.pop(1)).spec
        from openrlhf.trainer import ppo_trainer, ppo_trainer_async

        for module, name in ((ppo_trainer, "PPOTrainer"), (ppo_trainer_async, "TrainingActor")):
            setattr(module, name, weighted_trainer(getattr(module, name), mode))
    runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
