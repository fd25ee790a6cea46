"""LLM judge: client, limits, budget, cache and ledger. It imports neither torch nor verl.

The way of a question, from a reward to a server:

| module | what it has |
|---|---|
| `fluency` | the prompt of the fluency judge, and the parser of its answer (`json_answer`) |
| `ray_service`, `watchdog` | one service for all processes of a run: a named Ray actor, restarted if it hangs |
| `service` | `JudgeService`: asks each question once; cache, metrics, ledger, policy `halt` |
| `response_cache`, `cache`, `cache_writer` | answers in memory; the SQLite file of answers; group commits to it |
| `client` | `JudgeClient.ask`: retries, hedging, deadline; returns an `Answer` or raises `JudgeFailure` (`answer`) |
| `router` | chooses an endpoint, then waits for a slot (`rate_limiter`), budget and permit (`breaker`) |
| `budget`, `spend_file` | the hard budget, and its file, which outlives a kill |
| `http`, `keys` | connections of one endpoint; API keys, kept out of every log |
| `completion` | parser of a chat completion, classifier of HTTP errors |
| `metrics`, `quarantine` | numbers for the trainer; questions whose answers hang the parser |

Settings are in `config`. `ledger` keeps every judged trace; `scoring` and `rejudge` are the commands `pv-rl score` and
`pv-rl rejudge`; `agreement` has statistics of raters. `processes` runs a process and ends all that it started.
"""
