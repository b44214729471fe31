"""SQS and Lambda's event source mapping: what arrives, what becomes of it, and what the queue is told."""
