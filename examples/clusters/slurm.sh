#!/bin/bash
# A run of pv-rl in a Slurm job: one Ray node on each host of the allocation, then pv-rl train on the first.
#
#     RUN=/shared/runs/8b sbatch --nodes=2 slurm.sh run=8b cluster=node8x2 recipe=balanced data_dir=/shared/data
#
# The same command again resumes the run, if it has begun. All hosts need the same Python environment, active
# when you submit, and have to see RUN and the data.
#SBATCH --job-name=pv-rl
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@1200
# 20 minutes before the end Slurm sends TERM, and pv-rl train ends the run after its step, with a checkpoint.
set -euo pipefail
: "${RUN:?set RUN to the folder of the run, on storage that all hosts share}"

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export RAY_ADDRESS="$head:$((20000 + SLURM_JOB_ID % 10000))" # another port for each job on a host
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN # only this job's processes may use its Ray

srun --nodes=1 --ntasks=1 --nodelist="$head" --overlap \
  ray start --head --node-ip-address="$head" --port="${RAY_ADDRESS##*:}" --include-dashboard=false --block ${RAY_ARGS:-} &
if ((SLURM_JOB_NUM_NODES > 1)); then
  srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$head" --overlap \
    bash -c 'until ray status > /dev/null 2>&1; do sleep 1; done; exec ray start --address="$RAY_ADDRESS" --block '"${RAY_ARGS:-}" &
fi
timeout 300 python - <<'PYTHON'
import os, time
import ray

while True:
    try:
        ray.init(logging_level="ERROR")
        break
    except ConnectionError:
        time.sleep(1)
while sum(node["Alive"] for node in ray.nodes()) < int(os.environ["SLURM_JOB_NUM_NODES"]):
    time.sleep(1)
PYTHON

if [[ -e $RUN/run.json ]]; then
  set -- --resume "$RUN"
else
  set -- "$@" "hydra.run.dir=$RUN"
fi
pv-rl train "$@" &
trap 'kill -TERM $!' TERM
wait $! || { trap - TERM; wait $!; } # a TERM ends the first wait, not the run
