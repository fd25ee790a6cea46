#!/bin/bash
# All experiments of the lab that want a GPU, most important first. From the root of the repository; results under $OUT.
#
#   OUT=... bash examples/lab/experiments.sh            all, about 19 minutes estimated
#   OUT=... bash examples/lab/experiments.sh 1 2        only steps 1 and 2; 2, 3 and 5 begin from what 1 writes to $STARTS
#
# Three processes share the GPU (the loop is bound by kernel launches, one CPU core each). Estimates: 2 s of wall for a
# step of a stack of 60 runs alone, said by the map of 2026-11-28; three at once somewhat slower, 3 s assumed here. A
# held-out measurement counts as half a step for 128 proofs without an update (sampling is most of a step: assume 1.5 s).
# All estimates, none measured.
#
#   step                         stacks x steps                                 estimate
#   1 starts (3 at once)         1,000 steps of 256 traces each                  120 s  (3,000 steps of one took 174 s on an H100)
#   2 collapse_runs, 90 runs     3 of 30 runs, 60 steps + 61 measurements        60 x (3 + 1.5) = 270 s
#   3 veto_runs, 105 runs        3 of 35 runs, 60 steps + 7 x 2 passes           60 x 3 + 14 x 1.5 = 200 s
#   4 map, second half, 150      3 of 50 runs, 60 steps + 7 x 2 passes           200 s
#   5 map from weak checks, 120  grid of 3 stacks of 40 runs, then 50 fresh in 3 of 17   200 s + 180 s
#
set -u
PY=${PY:-python}
OUT=${OUT:?name the folder for the results}
STARTS=${STARTS:-starts}
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
STEPS_TO_DO=${*:-1 2 3 4 5}

three() {  # the same command as three processes that share the stacks
  local pids=() failed=0
  for part in 1/3 2/3 3/3; do "$PY" -m "$@" --device "${DEVICE:-cuda}" --part "$part" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

start() {  # NAME MIX
  "$PY" -m pv_rl.lab.warmstart --out "$STARTS/$1" --begin examples/lab/weights --steps "${START_STEPS:-1000}" --lr 0.001 \
    --seed 1 --device "${DEVICE:-cuda}" --workers "${WORKERS:-4}" --proofs 512 --mix "$2" > "$STARTS/$1.log" 2>&1
}

for step in $STEPS_TO_DO; do
  begun=$SECONDS
  case $step in
    1)
      mkdir -p "$STARTS"
      start loops '{"accept": 0.32, "loop": 0.15}' & a=$!
      start only_loops '{"accept": 0.32, "loop": 0.15, "miss": 0.97}' & b=$!
      # Weak checks and mostly acceptance: where an order of lengths was seen before (miss .93, false alarms .10).
      start weak '{"accept": 0.62, "bare": 0.10, "long": 0.15, "verbose": 0.10, "reject": 0.03, "miss": 0.93, "false_alarm": 0.10}' & c=$!
      wait $a && wait $b && wait $c || { tail -n 3 "$STARTS"/*.log; exit 1; }
      mkdir -p "$OUT/starts"
      for name in loops only_loops weak; do cp "$STARTS/$name/training.json" "$OUT/starts/$name.json"; done
      [ -n "${KEEP_STARTS:-1}" ] && for name in loops only_loops weak; do cp "$STARTS/$name/model.safetensors" "$OUT/starts/$name.safetensors"; done ;;
    2) three pv_rl.lab.collapse_runs --starts "$STARTS" --out "$OUT/collapse" --at-once 30 ;;
    3) three pv_rl.lab.veto_runs --starts "$STARTS" --out "$OUT/veto" --at-once 35 ;;
    4) three pv_rl.lab.weighting_map --only fresh --rates-from docs/data/map_runs.csv --eval-seed 7 --at-once 50 --out "$OUT/map2" ;;
    5) three pv_rl.lab.weighting_map --only grid --start "$STARTS/weak" --rate 1e-4 --rate 2e-4 --rate 4e-4 --share 0.6 \
         --share 0.75 --seeds 4 --at-once 40 --out "$OUT/weak" &&
       three pv_rl.lab.weighting_map --only fresh --start "$STARTS/weak" --fresh-seeds 5 --eval-seed 7 --at-once 17 --out "$OUT/weak" ;;
  esac || { echo "step $step failed"; exit 1; }
  echo "step $step took $((SECONDS - begun)) s"
done

# On any machine, afterwards:
#   python -m pv_rl.lab.sentinel_table $OUT/collapse --seeds tune            (tune: --watch '{"shift": 2}' and the like)
#   python -m pv_rl.lab.sentinel_table $OUT/collapse --seeds confirm --out docs/data/collapse_runs.csv
#   python -m pv_rl.lab.veto_report $OUT/veto --out report/veto
#   python -m pv_rl.lab.map_report $OUT/map2/fresh --out report/map2
#   python -m pv_rl.lab.map_report $OUT/weak/grid --out report/weak; python -m pv_rl.lab.map_report $OUT/weak/fresh --out report/weak2
