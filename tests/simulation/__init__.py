"""A deterministic simulator: the real domain and the real SQS code in a world whose every step a seed decides.

    uv run just simulate            20,000 seeds, as CI does
    uv run just simulate 2000000    the long run

`plan` says what a seed means, `world` is time and the scheduler, `sqs` the queue, `store` the port with its faults,
`spec` the port's conditions, `workers` Lambda and a long-running worker, `probe` asks the port what they never ask,
`oracle` knows what must hold, `run` puts them together, `planted` is a list of bugs that it must find. A clock ticks in
whole seconds, so that ties are frequent.
"""
