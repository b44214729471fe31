"""Valkey or Redis 7: every operation one Lua script, fenced."""
