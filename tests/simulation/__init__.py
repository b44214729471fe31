"""A deterministic simulator: the real domain and the real SQS code in a world whose every step a seed decides.

    uv run just simulate            20,000 seeds, as CI does
    uv run just simulate 2000000    the long run

`plan` says what a seed means, `world` is time and the scheduler, `sqs` the queue, `store` the port with its faults,
`workers` a process with the real domain in it (`sandbox` and `crew`: Lambda's, `runner`: a long-running one that renews
its leases), `probe` asks the port what they never ask, `run` puts them together.

What must hold: `spec` has the port's conditions, `oracle` the rules of attempts and effects (`attempts`: the window),
`endings` those of outcomes, `tries` those of asking again, `deliveries` those of messages. `planted` is a list of bugs
that it must find. A clock ticks in whole seconds, so that ties are frequent.
"""
