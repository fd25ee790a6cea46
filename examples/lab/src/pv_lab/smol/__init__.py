"""Study of a small language model: it learns to check the lab's proofs in English, by examples and then by RL.

`python -m pv_lab.smol.data`, `.runs` and `.report`; docs/studies/real_model.md has the study.
"""
