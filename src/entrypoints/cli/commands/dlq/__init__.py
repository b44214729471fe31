"""`onejob dlq`: what waits in the dead-letter queue, and sending it back."""
