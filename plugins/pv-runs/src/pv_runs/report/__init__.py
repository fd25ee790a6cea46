"""The runs of a sweep side by side: what `pv-rl report` reads, computes and writes."""
