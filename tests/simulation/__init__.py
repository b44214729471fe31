"""A deterministic simulator: the real domain and the real SQS code in a world whose every step a seed decides.

    uv run just simulate            20,000 seeds, as CI does
    uv run just simulate 2000000 --resume simulated.json
                                    the long run: what was done is kept there, and the same command goes on

`plan` says what a seed means, `world` is time and the scheduler, `threads` are locks and threads in it, `sqs` the
queue, `dead_letters` the other one, `store` the port with its faults, `backends` what stands behind it (`dynamodb`,
`sqlite`). `workers` is a process with the real domain in it: `sandbox` Lambda's (with the real pool of threads:
`crew`), `runner` a long-running one, `polling` the real poll worker; the real heartbeat renews the leases of both
(`beating`). `operators` forget, purge and redrive with the code of those commands, `probe` asks the port what nobody
asks, `run` puts them together. Some things are in a share of the seeds only (`plan.MORE`).

What must hold: `spec` has the port's conditions, `oracle` the rules of attempts and effects (`attempts`: the window),
`endings` those of outcomes, `tries` those of asking again, `deliveries` those of messages. `planted` is a list of bugs
that it must find. A clock ticks in whole seconds, so that ties are frequent.
"""
