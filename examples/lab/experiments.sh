#!/bin/bash
# All experiments of the lab that want a GPU, most important first. From the root of the repository; results under $OUT.
#
#   OUT=... bash examples/lab/experiments.sh            all, about half an hour on an H200
#   OUT=... bash examples/lab/experiments.sh 1 2        only steps 1 and 2; 2, 3, 5 and 6 begin from what 1 writes to $STARTS
#
# Three processes share the GPU (the loop is bound by kernel launches, one CPU core each). Measured on 2026-11-28, one H200
# with other work on it until the middle of step 2, commit d3cb659; step 6 at commit 3bb4259, with a training beside it.
#
#   step                           runs and steps                                        time
#   1 starts                       3 at once, 1,000 steps of 256 traces each              89 s
#   2 collapse_runs                90 runs, 60 steps, 61 held-out measurements            326 s
#   3 veto_runs                    105 runs, 60 steps, 7 measurements                     269 s
#   4 map, second half             150 runs, 60 steps, 7 measurements                     316 s
#   5 map from weak checks         120 runs, then 50 on fresh seeds                       407 s
#   6 collapse_runs, slow causes   50 runs, 100 steps, 101 measurements                   341 s
#
set -u
PY=${PY:-python}
OUT=${OUT:?name the folder for the results}
STARTS=${STARTS:-starts}
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
STEPS_TO_DO=${*:-1 2 3 4 5 6}
# Weak checks and mostly acceptance: where an order of lengths was seen before (miss .93, false alarms .10).
WEAK='{"accept": 0.62, "bare": 0.10, "long": 0.15, "verbose": 0.10, "reject": 0.03, "miss": 0.93, "false_alarm": 0.10}'

three() {  # the same command as three processes that share the stacks
  local pids=() failed=0
  for part in 1/3 2/3 3/3; do "$PY" -m "$@" --device "${DEVICE:-cuda}" --part "$part" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

start() {  # NAME MIX
  "$PY" -m pv_lab.warmstart --out "$STARTS/$1" --begin examples/lab/src/pv_lab/weights --steps "${START_STEPS:-1000}" --lr 0.001 \
    --seed 1 --device "${DEVICE:-cuda}" --workers "${WORKERS:-4}" --proofs 512 --mix "$2" > "$STARTS/$1.log" 2>&1
}

for step in $STEPS_TO_DO; do
  begun=$SECONDS
  case $step in
    1)
      mkdir -p "$STARTS"
      start loops '{"accept": 0.32, "loop": 0.15}' & a=$!
      start only_loops '{"accept": 0.32, "loop": 0.15, "miss": 0.97}' & b=$!
      start weak "$WEAK" & c=$!
      wait $a && wait $b && wait $c || { tail -n 3 "$STARTS"/*.log; exit 1; }
      mkdir -p "$OUT/starts"
      for name in loops only_loops weak; do cp "$STARTS/$name/training.json" "$OUT/starts/$name.json"; done
      [ -n "${KEEP_STARTS:-1}" ] && for name in loops only_loops weak; do cp "$STARTS/$name/model.safetensors" "$OUT/starts/$name.safetensors"; done ;;
    2) three pv_lab.collapse_runs --starts "$STARTS" --out "$OUT/collapse" --at-once 30 ;;
    3) three pv_lab.veto_runs --starts "$STARTS" --out "$OUT/veto" --at-once 35 ;;
    4) three pv_lab.weighting_map --only fresh --rates-from docs/studies/data/map_runs.csv --eval-seed 7 --at-once 50 --out "$OUT/map2" ;;
    5) three pv_lab.weighting_map --only grid --start "$STARTS/weak" --rate 1e-4 --rate 2e-4 --rate 4e-4 --share 0.6 \
         --share 0.75 --seeds 4 --at-once 40 --out "$OUT/weak" &&
       three pv_lab.weighting_map --only fresh --start "$STARTS/weak" --fresh-seeds 5 --eval-seed 7 --at-once 17 --out "$OUT/weak" ;;
    6) three pv_lab.collapse_runs --causes slow --steps 100 --starts "$STARTS" --out "$OUT/collapse_slow" --at-once 17 ;;
  esac || { echo "step $step failed"; exit 1; }
  echo "step $step took $((SECONDS - begun)) s"
done

# On any machine, afterwards:
#   python -m pv_lab.sentinel_table $OUT/collapse --seeds tune            (tune: --watch '{"shift": 2}' and the like)
#   python -m pv_lab.sentinel_table $OUT/collapse --seeds confirm --out docs/studies/data/collapse_runs.csv
#   the same for $OUT/collapse_slow
#   python -m pv_lab.veto_report $OUT/veto --out report/veto
#   python -m pv_lab.map_report $OUT/map2/fresh --out report/map2
#   python -m pv_lab.map_report $OUT/weak/grid --out report/weak; python -m pv_lab.map_report $OUT/weak/fresh --out report/weak2
