"""A process with few descriptors that listens; for each line of its input it says whether it can open some more."""

import os
import resource
import socket
import sys
from datetime import timedelta
from threading import Thread

from entrypoints.cli.commands.serve.server import HttpServer
from entrypoints.health import health_server

LIMIT = 128
OWN = 24


def serve(kind: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    if kind == "health":
        with health_server("127.0.0.1", 0, is_alive=lambda: True, is_ready=lambda: True) as port:
            talk(port)
    else:
        server = HttpServer(0, lambda event, context: {"statusCode": 200, "headers": {}, "body": "ok"}, timedelta(30))
        Thread(target=server.serve_forever, daemon=True).start()
        talk(server.server_port)
        os._exit(0)


def talk(port: int) -> None:
    print(port, flush=True)
    for _ in sys.stdin:
        opened: list[socket.socket] = []
        try:
            opened += [socket.socket() for _ in range(OWN)]
            print("free", flush=True)
        except OSError as error:
            print(error, flush=True)
        finally:
            for one in opened:
                one.close()


if __name__ == "__main__":
    serve(sys.argv[1])
